// Runs the engine on cases from a file, without TensorFlow and so on emulated
// processors too.
//
// Usage: engine_program THREADS < cases > results
//
// A case is a list of named arrays of float64 numbers, and so are its results:
// lines "name count", each followed by the numbers as they lie in memory, and
// "end". engine_cases.py writes the cases; an array is named after its member
// of RnnForward or RnnBackward, a gradient begins with "d_". Where the engine
// writes nothing, a result is NaN. Numbers are of 32 or 64 "bits"; 16 stands
// for float with products of bfloat16. The instruction set goes to stderr.
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
    config.activations.gate[p] = static_cast<Activation>(at("activations", p));
  }
  config.activations.state =
      static_cast<Activation>(at("activations", kMaxPreActivations));
  config.bfloat16 = at("bits") == 16;
  return config;
}

// From "lengths" [B], "mask" [B, T] or neither.
PackedSequence MakeSchedule(const Arrays& given) {
  const Numbers& how = given.at("schedule");
  const int64_t batch = how[0], time = how[1];
  const bool time_major = how[2] != 0, reversed = how[3] != 0;
  if (const auto found = given.find("lengths"); found != given.end()) {
    const std::vector<int64_t> lengths(found->second.begin(),
                                       found->second.end());
    return PackedSequence::Lengths(batch, time, lengths.data(), time_major, reversed);
  }
  if (time_major) return PackedSequence::TimeMajor(time, batch, reversed);
  const std::vector<char> mask(given.at("mask").begin(),
                               given.at("mask").end());
  return PackedSequence::BatchMajor(
      batch, time, reinterpret_cast<const bool*>(mask.data()), reversed);
}

template <class T>
class Call {
 public:
  explicit Call(const Arrays& given)
      : given_(given), config_(Config(given)), schedule_(MakeSchedule(given)) {
    rows_ = schedule_.batch * static_cast<int64_t>(given.at("schedule")[1]);
  }

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
    for (int p = 0; p < kMaxPreActivations && Has("peephole"); ++p) {
      if (config_.cell == CellKind::kLstm && p == kGateC) continue;
      weights.peephole[p] = array("peephole") + p * cell;
    }
    return weights;
  }

  template <class Args>
  void SetInputs(Args* args) {
    args->config = config_;
    args->schedule = &schedule_;
    args->weights =
        Weights<const T>([this](const char* name) { return In(name); });
    Narrow("input", &args->weights.input);
    Narrow("recurrent", &args->weights.recurrent);
    Narrow("projection", &args->weights.projection);
    args->dropout = {In("input_dropout"), In("recurrent_dropout")};
    args->x = In("x");
    args->x_stride = static_cast<int64_t>(given_.at("x").size()) / rows_;
    args->h0 = In("h0");
    args->c0 = In("c0");
    args->h_stride = given_.at("h_stride")[0];
  }

  // By output row those that "kept" names; without it all, packed.
  SavedActivations<T> Steps() {
    const int64_t cell = config_.cell_size;
    if (!Has("kept")) {
      packed_.resize(schedule_.size() * SavedCount(config_.cell) * cell);
      return PackedActivations(packed_.data(), config_.cell, cell);
    }
    SavedActivations<T> steps;
    for (const double row : given_.at("kept")) {
      const int k = static_cast<int>(row);
      steps.Set(k, Out("row" + std::to_string(k), rows_ * cell), cell);
    }
    return steps;
  }

  void RunForward(int threads) {
    RnnForward<T> args;
    SetInputs(&args);
    args.h = Out("h", rows_ * args.h_stride);
    args.steps = Steps();
    if (args.c0) {
      args.final_c = Out("final_c", schedule_.batch * config_.cell_size);
    }
    cpu::Forward(args, threads);
  }

  void RunBackward(int threads) {
    RnnBackward<T> args;
    SetInputs(&args);
    if (given_.at("keeps_h")[0] != 0) args.h = results_.at("h").data();
    const SavedActivations<T> steps = Steps();
    args.steps.compact = steps.compact;
    for (int k = 0; k < kMaxSavedActivations; ++k) {
      args.steps.Set(k, steps.row[k], steps.stride[k]);
      args.grad.Set(k, In("grad" + std::to_string(k)), config_.cell_size);
    }
    args.h_grad = In("h_grad");
    args.dh = InOut("d_h0", "final_h_grad");
    args.dc = InOut("d_c0", "final_c_grad");
    args.weights_grad = Weights<T>([this](const std::string& name) {
      return Has(name) ? Out("d_" + name, given_.at(name).size()) : nullptr;
    });
    args.adds_to_x_grad = Has("dx_before");
    args.x_grad = args.adds_to_x_grad ? InOut("d_x", "dx_before")
                              : Out("d_x", given_.at("x").size());
    cpu::Backward(args, threads);
  }

  const Arrays& given_;
  const RnnConfig config_;
  const PackedSequence schedule_;
  int64_t rows_ = 0;
  std::map<std::string, std::vector<T>> inputs_, results_;
  std::map<std::string, std::vector<BFloat16>> narrow_;
  std::vector<T> packed_;
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
  std::cerr << tf_lstm_ops::SelectedInstructionSet().name << '\n';
  tf_lstm_ops::Arrays given;
  while (tf_lstm_ops::Read(std::cin, &given)) {
    tf_lstm_ops::Write(tf_lstm_ops::Run(given, std::atoi(argv[1])), std::cout);
  }
  return std::cin.eof() ? 0 : 1;
}
