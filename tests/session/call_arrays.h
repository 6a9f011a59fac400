// CallArrays: the inputs and outputs of a call of any session.
#ifndef TF_LSTM_OPS_TESTS_SESSION_CALL_ARRAYS_H_
#define TF_LSTM_OPS_TESTS_SESSION_CALL_ARRAYS_H_

#include <cstdint>
#include <cstring>
#include <vector>

#include "tf_lstm_ops.h"

class CallArrays {
 public:
  // Sets `code` to the error of the first function that fails, else to OK.
  CallArrays(const tf_lstm_ops_session* session,
             const tf_lstm_ops_session_info& info, int64_t batch, int64_t steps,
             int32_t* code)
      : steps_(steps) {
    tf_lstm_ops_array array = {};
    array.struct_size = sizeof(array);
    inputs_.resize(info.input_count, array);
    outputs_.resize(info.output_count, array);
    for (int32_t k = 0; k < info.input_count; ++k) {
      tf_lstm_ops_array& input = inputs_[k];
      *code =
          tf_lstm_ops_session_get_input(session, k, &input, nullptr, nullptr);
      if (*code) return;
      input.shape[0] = batch;
      if (input.shape[1] < 0) input.shape[1] = steps;
    }
    *code = tf_lstm_ops_session_infer_shapes(session, inputs_.data(),
                                             info.input_count, outputs_.data(),
                                             info.output_count, nullptr);
    if (*code) return;
    for (tf_lstm_ops_array& input : inputs_) {
      std::vector<float>& x = arrays_.emplace_back(Elements(input));
      // The bytes of zeros are indices, too.
      for (size_t k = 0; k < x.size() && input.type == TF_LSTM_OPS_FLOAT32;
           ++k) {
        x[k] = static_cast<float>(k * 7 % 13) / 13.0F;
      }
      input.data = x.data();
    }
    for (tf_lstm_ops_array& output : outputs_) {
      output.data = arrays_.emplace_back(Elements(output)).data();
    }
    masks_.resize(inputs_.size());
    for (size_t k = 0; k < inputs_.size(); ++k) {
      masks_[k].resize(batch * inputs_[k].shape[1]);
      for (size_t i = 0; i < masks_[k].size(); ++i) masks_[k][i] = i % 3 != 0;
    }
  }
  CallArrays(CallArrays&&) = default;

  int64_t steps() const { return steps_; }
  // Whether calls of one input of type float and one output are possible.
  bool is_simple() const {
    return inputs_.size() == 1 && outputs_.size() == 1 &&
           inputs_[0].type == TF_LSTM_OPS_FLOAT32;
  }
  const float* x() const { return arrays_[0].data(); }
  int64_t x_count() const { return Elements(inputs_[0]); }
  float* y() { return arrays_[inputs_.size()].data(); }
  int64_t y_count() const { return Elements(outputs_[0]); }

  int32_t Run(const tf_lstm_ops_session* session, bool is_masked,
              tf_lstm_ops_error* error) {
    SetMasks(is_masked);
    return tf_lstm_ops_session_run_arrays(session, inputs_.data(), count(),
                                          outputs_.data(), output_count(),
                                          error);
  }
  int32_t Run(tf_lstm_ops_stream* stream, tf_lstm_ops_error* error) {
    SetMasks(false);
    return tf_lstm_ops_stream_run_arrays(stream, inputs_.data(), count(),
                                         outputs_.data(), output_count(),
                                         error);
  }

  // A copy of all outputs, and whether they still have its bits.
  std::vector<std::vector<float>> Outputs() const {
    return {arrays_.begin() + count(), arrays_.end()};
  }
  bool Equals(const std::vector<std::vector<float>>& outputs) const {
    for (size_t k = 0; k < outputs.size(); ++k) {
      const std::vector<float>& own = arrays_[inputs_.size() + k];
      if (std::memcmp(own.data(), outputs[k].data(),
                      own.size() * sizeof(float)) != 0) {
        return false;
      }
    }
    return true;
  }

 private:
  static int64_t Elements(const tf_lstm_ops_array& array) {
    int64_t count = 1;
    for (int k = 0; k < array.rank; ++k) count *= array.shape[k];
    return count;
  }
  int32_t count() const { return static_cast<int32_t>(inputs_.size()); }
  int32_t output_count() const { return static_cast<int32_t>(outputs_.size()); }
  void SetMasks(bool is_masked) {
    for (size_t k = 0; k < inputs_.size(); ++k) {
      inputs_[k].mask = is_masked ? masks_[k].data() : nullptr;
    }
  }

  int64_t steps_;
  std::vector<tf_lstm_ops_array> inputs_, outputs_;
  std::vector<std::vector<float>> arrays_;  // of the inputs, then the outputs
  std::vector<std::vector<uint8_t>> masks_;
};

#endif  // TF_LSTM_OPS_TESTS_SESSION_CALL_ARRAYS_H_
