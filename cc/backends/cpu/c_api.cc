#include "backends/cpu/c_api.h"

#include "backends/cpu/engine.h"
#include "backends/cpu/layer.h"
#include "backends/cpu/roofline.h"

const char* tf_lstm_ops_instruction_set(int index) {
  const tf_lstm_ops::InstructionSet* sets;
  const int count = tf_lstm_ops::AvailableInstructionSets(&sets);
  return index >= 0 && index < count ? sets[index].name : nullptr;
}

const char* tf_lstm_ops_selected_instruction_set() {
  return tf_lstm_ops::SelectedInstructionSet().name;
}

int tf_lstm_ops_thread_count(int configured) {
  return tf_lstm_ops::cpu::ThreadCount(configured);
}

void tf_lstm_ops_sigmoid(const float* x, float* y, int64_t n) {
  tf_lstm_ops::SelectedInstructionSet().engine->sigmoid(x, y, n);
}

void tf_lstm_ops_tanh(const float* x, float* y, int64_t n) {
  tf_lstm_ops::SelectedInstructionSet().engine->tanh(x, y, n);
}

double tf_lstm_ops_measure_flops(int threads) {
  return tf_lstm_ops::cpu::MeasureFlops(threads);
}

double tf_lstm_ops_measure_read_bandwidth(int64_t bytes, int threads) {
  return tf_lstm_ops::cpu::MeasureReadBandwidth(bytes, threads);
}
