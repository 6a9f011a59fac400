#include "backends/cpu/for_python.h"

#include <exception>
#include <limits>

#include "backends/cpu/engine.h"
#include "backends/cpu/processor/caches.h"
#include "backends/cpu/processor/measured_rates.h"
#include "backends/cpu/thread_count.h"
#include "core/functions.h"

namespace {

// Returns f(), or `otherwise` if it throws: C has no exceptions.
template <class Result, class F>
Result Try(Result otherwise, const F& f) {
  try {
    return f();
  } catch (const std::exception&) {
    return otherwise;
  }
}

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

}  // namespace

const char* tf_lstm_ops_instruction_set(int index) {
  const tf_lstm_ops::InstructionSet* sets;
  const int count = tf_lstm_ops::AvailableInstructionSets(&sets);
  return index >= 0 && index < count ? sets[index].name : nullptr;
}

const char* tf_lstm_ops_selected_instruction_set() {
  return tf_lstm_ops::SelectedInstructionSet().name;
}

int tf_lstm_ops_thread_count(int configured) {
  return Try(1, [=] { return tf_lstm_ops::cpu::ThreadCount(configured); });
}

int64_t tf_lstm_ops_cache_size(int level) {
  return Try(int64_t{0}, [=] {
    const tf_lstm_ops::cpu::Caches& caches = tf_lstm_ops::cpu::TheCaches();
    return level == 1   ? caches.l1
           : level == 2 ? caches.l2
           : level == 3 ? caches.shared
                        : 0;
  });
}

double tf_lstm_ops_measured_rate(int index) {
  return Try(kNone, [=] {
    const tf_lstm_ops::cpu::Rates& rates = tf_lstm_ops::cpu::MeasuredRates();
    return index == 0   ? rates.multiply_add
           : index == 1 ? rates.near_byte
           : index == 2 ? rates.far_byte
                        : kNone;
  });
}

void tf_lstm_ops_activate(int function, const float* x, float* y, int64_t n) {
  tf_lstm_ops::SelectedInstructionSet().engine->activate(
      static_cast<tf_lstm_ops::Activation>(function), x, y, n);
}

void tf_lstm_ops_exp(const float* x, float* y, int64_t n) {
  tf_lstm_ops::SelectedInstructionSet().engine->exp(x, y, n);
}

const char* tf_lstm_ops_function(int number, int* numbers, int* is_of_rows) {
  const auto* traits = tf_lstm_ops::FindFunction(number);
  if (traits == nullptr) return nullptr;
  *numbers = traits->numbers;
  *is_of_rows = traits->is_of_rows;
  return traits->name;
}
