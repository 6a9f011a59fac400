// Runs the engine on cases from a file, without TensorFlow and so on emulated
// processors too.
//
// Usage: engine_program THREADS < cases > results
//
// A case is a list of named float64 arrays, and so are its results: lines "name
// count", each followed by the elements in binary, then "end". engine_cases.py
// writes the cases. An array is named after its member of LayerForward or
// LayerBackward; a gradient begins with "d_". Elements that the engine does not
// write are NaN in the results. "bits" is the size of the elements, 32 or 64;
// 16 means float with products of bfloat16. The instruction set goes to stderr.
#if defined(_WIN32)
#include <fcntl.h>
#include <io.h>
#endif

#include <cmath>
#include <cstdlib>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "backends/cpu/engine.h"
#include "backends/cpu/layer.h"
#include "core/float16.h"
#include "core/layer_direction.h"
#include "core/packed_sequence.h"
#include "core/sequence.h"

namespace tf_lstm_ops {
namespace {

using Numbers = std::vector<double>;
using Arrays = std::map<std::string, Numbers>;

bool Read(std::istream& in, Arrays* arrays) {
  arrays->clear();
  std::string name;
  while (in >> name && name != "end") {
    int64_t count = 0;
    in >> count;
    in.get();
    Numbers& numbers = (*arrays)[name];
    numbers.resize(count);
    in.read(reinterpret_cast<char*>(numbers.data()), count * sizeof(double));
  }
  return in.good();
}

void Write(const Arrays& arrays, std::ostream& out) {
  for (const auto& [name, numbers] : arrays) {
    out << name << ' ' << numbers.size() << '\n';
    out.write(reinterpret_cast<const char*>(numbers.data()),
              numbers.size() * sizeof(double));
    out << '\n';
  }
  out << "end\n";
}

RnnConfig Config(const Arrays& given) {
  const auto at = [&](const char* name, size_t k = 0) {
    return given.at(name)[k];
  };
  RnnConfig config;
  config.cell = static_cast<CellKind>(at("cell"));
  config.input_size = at("sizes", 0);
  config.cell_size = at("sizes", 1);
  config.hidden_size = at("sizes", 2);
  config.forget_bias = at("forget_bias");
  config.cell_clip = at("cell_clip");
  config.x_gate_stride = at("x_gate_stride");
  for (int p = 0; p < kMaxPreActivations; ++p) {
    config.gate_order.block[p] = at("gate_order", p);
    config.options.activations.gate[p] =
        static_cast<Activation>(at("activations", p));
  }
  config.options.activations.state =
      static_cast<Activation>(at("activations", kMaxPreActivations));
  config.options.layer_norm.epsilon = at("epsilon");
  config.options.layer_norm.carries_normalized_state = at("carries_n") != 0;
  config.bfloat16 = at("bits") == 16;
  return config;
}

// With "lengths" [B], "mask" [B, T] or neither. The result refers to `lengths`
// and `mask`.
Sequence MakeSequence(const Arrays& given, std::vector<int32_t>* lengths,
                      std::vector<char>* mask) {
  const Numbers& shape = given.at("sequence");
  Sequence sequence;
  sequence.batch = shape[0];
  sequence.time = sequence.steps = shape[1];
  sequence.time_major = shape[2] != 0;
  sequence.reversed = shape[3] != 0;
  if (const auto found = given.find("lengths"); found != given.end()) {
    lengths->assign(found->second.begin(), found->second.end());
    sequence.lengths = lengths->data();
  } else if (!sequence.time_major) {
    mask->assign(given.at("mask").begin(), given.at("mask").end());
    sequence.mask = reinterpret_cast<const bool*>(mask->data());
    sequence.in_order_of_computation = true;
  }
  return sequence;
}

template <class T>
class Call {
 public:
  explicit Call(const Arrays& given)
      : given_(given),
        config_(Config(given)),
        sequence_(MakeSequence(given, &lengths_, &mask_)),
        packed_(sequence_),
        rows_(sequence_.batch * sequence_.time) {}

  Arrays Run(int threads) {
    RunForward(threads);
    RunBackward(threads);
    Arrays results;
    for (const auto& [name, values] : results_) {
      results[name] = Numbers(values.begin(), values.end());
    }
    return results;
  }

 private:
  bool Has(const std::string& name) const { return given_.count(name) > 0; }

  // Null where absent.
  const T* In(const std::string& name) {
    if (!Has(name)) return nullptr;
    const Numbers& numbers = given_.at(name);
    return inputs_.try_emplace(name, numbers.begin(), numbers.end())
        .first->second.data();
  }

  T* Out(const std::string& name, int64_t size) {
    return results_.try_emplace(name, size, static_cast<T>(NAN))
        .first->second.data();
  }

  // What is read and then overwritten.
  T* InOut(const std::string& name, const std::string& from) {
    if (!Has(from)) return nullptr;
    const Numbers& numbers = given_.at(from);
    return results_.try_emplace(name, numbers.begin(), numbers.end())
        .first->second.data();
  }

  template <class E>
  GateMatrices<E> Matrices(E* data, int gates, int64_t inputs,
                           int64_t outputs) const {
    if (data == nullptr) return {};
    return given_.at("by_unit")[0] != 0 ? ByUnit(data, inputs, outputs)
                                        : ByInput(data, gates, outputs);
  }

  // Those that lie by input are given in 16 bits.
  void Narrow(const std::string& name, GateMatrices<const T>* weights) {
    if (!*weights || !config_.bfloat16 || given_.at("by_unit")[0] != 0) return;
    std::vector<BFloat16>& narrow = narrow_[name];
    narrow.clear();
    for (const double number : given_.at(name)) {
      narrow.push_back(BFloat16::FromFloat(static_cast<float>(number)));
    }
    weights->data = nullptr;
    weights->bfloat16 = narrow.data();
  }

  // `array(name)` gives those that there are.
  template <class E, class Array>
  RnnWeights<E> Weights(const Array& array) const {
    const int gates = GateCount(config_.cell);
    const int64_t cell = config_.cell_size, hidden = config_.hidden_size;
    RnnWeights<E> weights;
    weights.input = Matrices(array("input"), gates, config_.input_size, cell);
    weights.recurrent = Matrices(array("recurrent"), gates, hidden, cell);
    weights.projection = Matrices(array("projection"), 1, cell, hidden);
    weights.input_bias = array("input_bias");
    weights.recurrent_bias = array("recurrent_bias");
    weights.input_scale = array("input_scale");
    weights.recurrent_scale = array("recurrent_scale");
    weights.state_scale = array("state_scale");
    weights.state_offset = array("state_offset");
    for (int p = 0; p < kMaxPreActivations && Has("peephole"); ++p) {
      if (config_.cell == CellKind::kLstm && p == kGateC) continue;
      weights.peephole[p] = array("peephole") + p * cell;
    }
    return weights;
  }

  template <class Args>
  void SetInputs(Args* args) {
    const int64_t batch = sequence_.batch, input = config_.input_size;
    args->config = config_;
    args->sequence = sequence_;
    args->weights =
        Weights<const T>([this](const char* name) { return In(name); });
    Narrow("input", &args->weights.input);
    Narrow("recurrent", &args->weights.recurrent);
    Narrow("projection", &args->weights.projection);
    args->input_dropout = {In("input_dropout"), batch * input, input, 1};
    args->recurrent_dropout = {In("recurrent_dropout"),
                               batch * config_.hidden_size, config_.hidden_size,
                               1};
    args->x = In("x");
    args->x_stride = static_cast<int64_t>(given_.at("x").size()) / rows_;
    args->h0 = {In("h0"), config_.hidden_size};
    args->c0 = {In("c0"), config_.cell_size};
    args->h_stride = given_.at("h_stride")[0];
  }

  // By output row the activations that "saved" names; without it all, packed.
  SavedActivations<T> Saved() {
    const int64_t cell = config_.cell_size;
    if (!Has("saved")) {
      packed_activations_.resize(packed_.size() * SavedCount(config_.cell) *
                                 cell);
      return ActivationsByPackedRow<T>(packed_activations_.data(), config_.cell,
                                       cell);
    }
    SavedActivations<T> saved;
    for (const double index : given_.at("saved")) {
      const int k = static_cast<int>(index);
      saved.Set(k, Out("saved" + std::to_string(k), rows_ * cell), cell);
    }
    return saved;
  }

  void RunForward(int threads) {
    LayerForward<T> args;
    SetInputs(&args);
    args.h = Out("h", rows_ * args.h_stride);
    args.saved = Saved();
    if (args.c0.data) {
      args.final_c = {Out("final_c", sequence_.batch * config_.cell_size),
                      config_.cell_size};
    }
    cpu::ComputeForward(args, packed_, threads);
  }

  void RunBackward(int threads) {
    LayerBackward<T> args;
    SetInputs(&args);
    if (given_.at("keeps_h")[0] != 0) args.h = results_.at("h").data();
    const SavedActivations<T> saved = Saved();
    args.saved.by_packed_row = saved.by_packed_row;
    for (int k = 0; k < kMaxSavedActivations; ++k) {
      args.saved.Set(k, saved.data[k], saved.stride[k]);
      args.saved_grad.Set(k, In("saved_grad" + std::to_string(k)),
                          config_.cell_size);
    }
    args.h_grad = In("h_grad");
    args.h_grad_stride = args.h_stride;
    SetStateGrads(&args);
    args.weights_grad = Weights<T>([this](const std::string& name) {
      return Has(name) ? Out("d_" + name, given_.at(name).size()) : nullptr;
    });
    args.adds_to_x_grad = Has("d_x_before");
    args.x_grad = args.adds_to_x_grad ? InOut("d_x", "d_x_before")
                                      : Out("d_x", given_.at("x").size());
    cpu::ComputeBackward(args, packed_, threads);
  }

  void SetStateGrads(LayerBackward<T>* args) {
    const int64_t batch = sequence_.batch;
    const int64_t hidden = config_.hidden_size, cell = config_.cell_size;
    args->final_h_grad = {In("final_h_grad"), hidden};
    args->h0_grad = {Out("d_h0", batch * hidden), hidden};
    if (!Has("final_c_grad")) return;
    args->final_c_grad = {In("final_c_grad"), cell};
    args->c0_grad = {Out("d_c0", batch * cell), cell};
  }

  const Arrays& given_;
  const RnnConfig config_;
  std::vector<int32_t> lengths_;
  std::vector<char> mask_;
  const Sequence sequence_;
  const PackedSequence packed_;
  const int64_t rows_;
  std::map<std::string, std::vector<T>> inputs_, results_;
  std::map<std::string, std::vector<BFloat16>> narrow_;
  std::vector<T> packed_activations_;
};

// The functions that the gates are made of, of "z".
Arrays Functions(const Numbers& z) {
  const std::vector<float> x(z.begin(), z.end());
  const auto size = static_cast<int64_t>(x.size());
  std::vector<float> y(size);
  Arrays results;
  const Engine& engine = *SelectedInstructionSet().engine;
  engine.sigmoid(x.data(), y.data(), size);
  results["sigmoid"] = Numbers(y.begin(), y.end());
  engine.tanh(x.data(), y.data(), size);
  results["tanh"] = Numbers(y.begin(), y.end());
  return results;
}

Arrays Run(const Arrays& given, int threads) {
  if (given.count("z") > 0) return Functions(given.at("z"));
  if (given.at("bits")[0] == 64) return Call<double>(given).Run(threads);
  return Call<float>(given).Run(threads);
}

}  // namespace
}  // namespace tf_lstm_ops

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: " << argv[0] << " THREADS < cases > results\n";
    return 2;
  }
#if defined(_WIN32)  // else the ends of lines change
  _setmode(0, _O_BINARY);
  _setmode(1, _O_BINARY);
#endif
  std::cerr << tf_lstm_ops::SelectedInstructionSet().name << '\n';
  tf_lstm_ops::Arrays given;
  while (tf_lstm_ops::Read(std::cin, &given)) {
    tf_lstm_ops::Write(tf_lstm_ops::Run(given, std::atoi(argv[1])), std::cout);
  }
  return std::cin.eof() ? 0 : 1;
}
