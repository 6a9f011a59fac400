#include "dialects/mpsgraph/problem.h"

#include <string>
#include <vector>

#include "core/signature.h"

namespace tf_lstm_ops::mpsgraph {
namespace {

Activation ParseActivation(const std::string& name) {
  if (name == "hard_sigmoid") return Activation::kHardSigmoidFifth;
  return ActivationNamed(name);  // kLinear for "none"
}

// An expected dimension.
struct Size {
  const char* what;
  int64_t value;
};

Status CheckShape(const char* name, const Shape& shape,
                  const std::vector<Size>& want) {
  TF_LSTM_OPS_RETURN_IF_ERROR(
      CheckRank(name, shape, static_cast<int>(want.size())));
  for (size_t k = 0; k < want.size(); ++k) {
    TF_LSTM_OPS_RETURN_IF_ERROR(CheckDim(name, shape, static_cast<int>(k),
                                         want[k].what, want[k].value));
  }
  return Status();
}

class Checks {
 public:
  Checks(const ShapeOf& shape_of, Problem* problem)
      : shape_of_(shape_of), problem_(*problem) {}

  // Checks all arguments and sets the sizes.
  Status Run() {
    TF_LSTM_OPS_RETURN_IF_ERROR(RecurrentWeight());
    TF_LSTM_OPS_RETURN_IF_ERROR(Source());
    TF_LSTM_OPS_RETURN_IF_ERROR(Overflow());
    TF_LSTM_OPS_RETURN_IF_ERROR(Check("bias", {Gates()}));
    TF_LSTM_OPS_RETURN_IF_ERROR(Check("init_state", {Batch(), Cell()}));
    TF_LSTM_OPS_RETURN_IF_ERROR(Check("init_cell", {Batch(), Cell()}));
    TF_LSTM_OPS_RETURN_IF_ERROR(Mask());
    TF_LSTM_OPS_RETURN_IF_ERROR(Check("peephole", PerDirection({Gate()})));
    for (const char* name :
         {"source_gradient", "cell_output_fwd", "cell_output_gradient"}) {
      TF_LSTM_OPS_RETURN_IF_ERROR(Check(name, {Time(), Batch(), Cell()}));
    }
    for (const char* name : {"z_state", "z_state_gradient"}) {
      TF_LSTM_OPS_RETURN_IF_ERROR(Check(name, {Time(), Batch(), Gates()}));
    }
    TF_LSTM_OPS_RETURN_IF_ERROR(FinalGradient("state_gradient"));
    TF_LSTM_OPS_RETURN_IF_ERROR(FinalGradient("cell_gradient"));
    for (const char* name :
         {"init_state", "init_cell", "state_gradient", "cell_gradient"}) {
      problem_.has_states |= shape_of_(name).rank_known();
    }
    return Status();
  }

 private:
  bool bidirectional() const { return problem_.directions == 2; }

  Size Time() const { return {"time_length", problem_.time}; }
  Size Batch() const { return {"batch_size", problem_.batch}; }
  Size Gate() const { return {"cell_size * 4", problem_.gates()}; }
  // The size of the cell dimension of all directions.
  Size Cell() const {
    return {bidirectional() ? "cell_size * 2" : "cell_size",
            problem_.directions * problem_.cell};
  }
  Size Gates() const {
    return {bidirectional() ? "cell_size * 8" : "cell_size * 4",
            problem_.directions * problem_.gates()};
  }
  std::vector<Size> PerDirection(std::vector<Size> sizes) const {
    if (bidirectional()) sizes.insert(sizes.begin(), {"directions", 2});
    return sizes;
  }

  Status Check(const char* name, const std::vector<Size>& want) const {
    return CheckShape(name, shape_of_(name), want);
  }

  Status RecurrentWeight() {
    const char* name = "recurrent_weight";
    const Shape shape = shape_of_(name);
    const int rank = bidirectional() ? 3 : 2;
    TF_LSTM_OPS_RETURN_IF_ERROR(CheckRank(name, shape, rank));
    problem_.cell = shape.dim(rank - 1);
    if (problem_.cell == 0) {
      return InvalidArgument(name, " is empty, has shape: ", shape.ToString());
    }
    int64_t product = 0;
    if (!CheckedProduct({problem_.cell, problem_.cell, 8, kBytes}, &product)) {
      return InvalidArgument(
          name, ": cell_size * cell_size * 8 overflows: ", shape.ToString());
    }
    return Check(name, PerDirection({Gate(), {"cell_size", problem_.cell}}));
  }

  Status Source() {
    const Shape source = shape_of_("source"),
                weight = shape_of_("input_weight");
    problem_.time = source.dim(0);
    problem_.batch = source.dim(1);
    problem_.has_input_weight = weight.rank_known();
    if (!problem_.has_input_weight) {
      problem_.input = problem_.cell;
      return Check("source", {Time(), Batch(), Gates()});
    }
    problem_.input = source.dim(2);
    return Check("input_weight", {Gates(), {"input_size", problem_.input}});
  }

  // Checks that every product of sizes that is computed later fits into int64.
  Status Overflow() const {
    int64_t product = 0;
    for (const int64_t width : {problem_.source_width(), 8 * problem_.cell}) {
      if (!CheckedProduct({problem_.time, problem_.batch, width, kBytes},
                          &product)) {
        return InvalidArgument(
            "source: time_length * batch_size * width overflows: time_length "
            "is ",
            problem_.time, ", batch_size is ", problem_.batch, ", width is ",
            width);
      }
    }
    return Status();
  }

  Status Mask() const {
    const Shape mask = shape_of_("mask");
    if (!mask.rank_known()) return Status();
    const int64_t want[] = {problem_.batch, Cell().value};
    bool fits = mask.rank() <= 2;
    for (int k = 0; fits && k < mask.rank(); ++k) {
      const int64_t got = mask.dim(k);
      fits = got == 1 || got == want[2 - mask.rank() + k];
    }
    if (fits) return Status();
    return InvalidArgument("mask must broadcast to [", want[0], ",", want[1],
                           "] but has shape ", mask.ToString());
  }

  // [N,D*H] or [1,N,D*H].
  Status FinalGradient(const char* name) const {
    std::vector<Size> want = {Batch(), Cell()};
    const Shape shape = shape_of_(name);
    if (shape.rank_known() && shape.rank() == 3) {
      want.insert(want.begin(), {"1", 1});
    }
    return CheckShape(name, shape, want);
  }

  // Bytes of an element, times the saved activations of a step.
  static constexpr int64_t kBytes = 8 * sizeof(double);
  const ShapeOf& shape_of_;
  Problem& problem_;
};

}  // namespace

Status Descriptor::Init(const AttributeReader& reader) {
  bool bidirectional = false, forget_gate_last = false;
  TF_LSTM_OPS_RETURN_IF_ERROR(reader.GetAttr("reverse", &reverse));
  TF_LSTM_OPS_RETURN_IF_ERROR(reader.GetAttr("bidirectional", &bidirectional));
  TF_LSTM_OPS_RETURN_IF_ERROR(
      reader.GetAttr("forget_gate_last", &forget_gate_last));
  directions = bidirectional ? 2 : 1;
  gate_order = forget_gate_last ? kOrderICFO : kOrderIFCO;
  const struct {
    const char* name;
    Activation* activation;
  } attributes[] = {
      {"input_gate_activation", &activations.gate[kGateI]},
      {"forget_gate_activation", &activations.gate[kGateF]},
      {"cell_gate_activation", &activations.gate[kGateC]},
      {"output_gate_activation", &activations.gate[kGateO]},
      {"activation", &activations.state},
  };
  for (const auto& attribute : attributes) {
    std::string name;
    TF_LSTM_OPS_RETURN_IF_ERROR(reader.GetAttr(attribute.name, &name));
    *attribute.activation = ParseActivation(name);
  }
  return Status();
}

Status MakeProblem(const Descriptor& descriptor, const ShapeOf& shape_of,
                   Problem* problem) {
  problem->directions = descriptor.directions;
  return Checks(shape_of, problem).Run();
}

std::vector<Shape> ForwardShapes(const Problem& problem, bool produce_cell,
                                 bool training) {
  const Shape none({0}), steps = problem.Steps(problem.cell);
  return {steps, produce_cell || training ? steps : none,
          training ? problem.Steps(problem.gates()) : none};
}

}  // namespace tf_lstm_ops::mpsgraph
