// Tests of backends/cpu/layer.h, with an engine that records its calls.
#include "backends/cpu/layer.h"

#include "backends/cpu/thread_count.h"

#if !defined(_WIN32)
#include <sys/wait.h>
#include <unistd.h>
#endif

#include <csignal>
#include <cstdlib>
#include <vector>

#include "backends/cpu/training_engine.h"
#define TF_LSTM_OPS_SIMD simd_test
#include "backends/cpu/simd/vector/hash.h"
#undef TF_LSTM_OPS_SIMD
#include "harness.h"

namespace tf_lstm_ops {
namespace {

int g_passes = 0, g_step_gradients = 0;

const TrainingEngine kRecorder = [] {
  TrainingEngine engine = {};
  engine.backward_double.run = [](const PlannedBackward<double>*, int,
                                  cpu::CallMemory*) { ++g_passes; };
  engine.backward_double.run_step = [](const LayerBackward<double>&, int) {
    ++g_step_gradients;
  };
  return engine;
}();
const Engine kEngine = [] {
  Engine engine = {};
  engine.hash = &simd_test::HashBytes;
  engine.multiply_add = [](int64_t rounds, int64_t* flops) {
    *flops = rounds;
    return 0.0F;
  };
  engine.sum = [](const float*, int64_t) { return 0.0F; };
  return engine;
}();
const float* g_packed = nullptr;  // kept weights of the last pass
BFloat16Engine g_bfloat16 = [] {
  BFloat16Engine engine = {};
  engine.forward.traits.lanes = 16;
  engine.forward.traits.dots_pairs = true;
  for (auto& way : engine.forward.ways) {
    way.run = [](const PlannedForward<float>* passes, int, cpu::CallMemory*) {
      g_packed = passes->packed;
    };
  }
  engine.forward.pack = [](const LayerDirection<float>&, cpu::WeightFormat,
                           float*) { return int64_t{1}; };
  return engine;
}();
const InstructionSet kSet = {"recorder", &kEngine, &kEngine};
const TrainingSet kTrainingSet = {&kRecorder, &g_bfloat16};

}  // namespace

const InstructionSet& SelectedInstructionSet() { return kSet; }
const TrainingSet& SelectedTrainingSet() { return kTrainingSet; }
const BFloat16Engine& SelectedBFloat16Engine() { return g_bfloat16; }
const TrainingEngine& TrainingEngineFor(const RnnConfig&) { return kRecorder; }

namespace cpu {
namespace {

// One step of an LSTM of one row and one unit, whose pre-activations'
// gradients are wanted.
struct Step {
  double numbers[32] = {};
  LayerBackward<double> layer;

  Step() {
    layer.config.input_size = layer.config.cell_size =
        layer.config.hidden_size = 1;
    layer.sequence.batch = layer.sequence.time = layer.sequence.steps = 1;
    for (int k = 0; k < kMaxSavedActivations; ++k) {
      layer.saved.Set(k, numbers + k, 1);
    }
    layer.z_grad = numbers + 16;
  }
};

TEST(GradientsOfPreActivationsAreThoseOfAStep) {
  const Step step;
  ComputeBackward(step.layer, PackedSequence(step.layer.sequence), 1);
  CHECK_EQ(g_step_gradients, 1);
  CHECK_EQ(g_passes, 0);
}

// The kept weights of a step of `batch` rows of a large bfloat16 layer.
const float* KeptOf(int64_t batch, KeptWeights* kept) {
  constexpr int64_t kUnits = 4096;  // more than an L2 cache
  static std::vector<float> states(16 * kUnits);
  LayerForward<float> layer;
  layer.config.bfloat16 = true;
  layer.config.cell_size = layer.config.hidden_size = kUnits;
  layer.sequence.batch = batch;
  layer.sequence.time = layer.sequence.steps = 1;
  layer.h0 = {states.data(), kUnits};
  layer.c0 = {states.data(), kUnits};
  layer.h = states.data();
  layer.h_stride = kUnits;
  g_packed = nullptr;
  ComputeForward(layer, PackedSequence(layer.sequence), 1, kept);
  return g_packed;
}

TEST(TheFunctionsForBFloat16SayWhetherWeightsAreKept) {
  KeptWeights kept;
  CHECK(KeptOf(2, &kept) != nullptr);
}

TEST(FewAndManyRowsShareWeightsThatAreAlwaysPairs) {
  KeptWeights kept;
  CHECK(KeptOf(2, &kept) == KeptOf(8, &kept));
  g_bfloat16.forward.traits.dots_pairs =
      false;  // many rows widen the weights when they pack
  CHECK(KeptOf(2, &kept) != KeptOf(8, &kept));
  g_bfloat16.forward.traits.dots_pairs = true;
}

#if !defined(_WIN32)
TEST(NoOtherPassForksToComputeGradientsOfPreActivations) {
  Step step;
  step.layer.h0_grad = {step.numbers + 24, 1};  // takes a product
  const pid_t child = fork();
  if (child == 0) {
    std::freopen("/dev/null", "w", stderr);
    ComputeBackward(step.layer, PackedSequence(step.layer.sequence), 1);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(WIFSIGNALED(status));
  CHECK_EQ(WTERMSIG(status), SIGABRT);
}
#endif

#if defined(_WIN32)
void setenv(const char* name, const char* value, int) {
  _putenv_s(name, value);
}
#endif

TEST(TheVariableForThreadsIsReadOnce) {
  const char* name = "TF_NUM_INTRAOP_THREADS";
  setenv(name, "3", 1);
  CHECK_EQ(ThreadCount(0), 3);
  setenv(name, "2", 1);
  CHECK_EQ(ThreadCount(0), 3);
  CHECK_EQ(ThreadCount(5), 5);  // what a session is told comes first
  CHECK_EQ(ThreadCount(65536), kMaxThreads);
}

}  // namespace
}  // namespace cpu
}  // namespace tf_lstm_ops
