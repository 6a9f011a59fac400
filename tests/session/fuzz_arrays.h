// Calls of any session of a fuzzed file, by the functions of arrays.
#ifndef TF_LSTM_OPS_TESTS_SESSION_FUZZ_ARRAYS_H_
#define TF_LSTM_OPS_TESTS_SESSION_FUZZ_ARRAYS_H_

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <vector>

#include "file_mutations.h"
#include "fuzz_checks.h"
#include "tf_lstm_ops.h"

using Arrays = std::vector<tf_lstm_ops_array>;

inline tf_lstm_ops_array NewArray() {
  tf_lstm_ops_array array = {};
  array.struct_size = sizeof(array);
  return array;
}

inline Arrays NewArrays(int32_t count) { return Arrays(count, NewArray()); }

// The number of elements, at most kManyElements.
constexpr int64_t kManyElements = int64_t{1} << 40;
inline int64_t Elements(const tf_lstm_ops_array& array) {
  int64_t count = 1;
  for (int k = 0; k < array.rank; ++k) {
    if (array.shape[k] == 0) return 0;
    if (count > kManyElements / array.shape[k]) return kManyElements;
    count *= array.shape[k];
  }
  return count;
}

// The inputs of a call.
class CallInputs {
 public:
  // Draws the sizes that a session leaves open; sometimes wrong ones.
  CallInputs(const tf_lstm_ops_session* session, int32_t count, int64_t batch,
             int64_t time, Random* random)
      : arrays_(NewArrays(count)) {
    tf_lstm_ops_error error = NewError();
    const bool is_wrong = random->OneIn(20);
    for (int32_t k = 0; k < count; ++k) {
      tf_lstm_ops_array& array = arrays_[k];
      Require(
          !tf_lstm_ops_session_get_input(session, k, &array, nullptr, &error),
          "get_input");
      for (int axis = 0; axis < array.rank; ++axis) {
        int64_t* size = &array.shape[axis];
        if (*size >= 0) continue;
        *size = axis == 0 ? batch : axis == 1 ? time : random->Below(5);
      }
      if (is_wrong) array.shape[random->Below(array.rank)] = random->Below(4);
    }
  }
  CallInputs(const CallInputs&) = delete;
  CallInputs& operator=(const CallInputs&) = delete;

  // Sets random elements, and masks of some inputs.
  void Fill(bool has_masks, Random* random) {
    for (tf_lstm_ops_array& array : arrays_) {
      const int64_t count = Elements(array);
      if (array.type == TF_LSTM_OPS_INT32) {
        array.data = Indices(count, random);
      } else {
        floats_.push_back(std::make_unique<Input>(count, random));
        array.data = const_cast<float*>(floats_.back()->data());
      }
      if (has_masks && random->OneIn(2)) array.mask = Mask(array, random);
    }
  }
  bool has_indices() const {
    return std::any_of(arrays_.begin(), arrays_.end(), [](const auto& array) {
      return array.type == TF_LSTM_OPS_INT32;
    });
  }
  const Arrays& arrays() const { return arrays_; }
  int32_t count() const { return static_cast<int32_t>(arrays_.size()); }

 private:
  // Mostly few and small indices, so that all of them are rows of a table.
  void* Indices(int64_t count, Random* random) {
    const bool is_wrong = random->OneIn(4);
    indices_.emplace_back(new int32_t[count]);
    int32_t* values = indices_.back().get();
    for (int64_t k = 0; k < count; ++k) {
      values[k] = static_cast<int32_t>(random->Below(4));
      if (is_wrong && random->OneIn(4)) {
        values[k] = static_cast<int32_t>(random->Next());
      }
    }
    return values;
  }
  const uint8_t* Mask(const tf_lstm_ops_array& array, Random* random) {
    const int64_t count = array.shape[0] * array.shape[1];
    masks_.emplace_back(new uint8_t[count]);
    for (int64_t k = 0; k < count; ++k) {
      masks_.back()[k] = static_cast<uint8_t>(random->Below(3));
    }
    return masks_.back().get();
  }

  Arrays arrays_;
  std::vector<std::unique_ptr<Input>> floats_;
  std::vector<std::unique_ptr<int32_t[]>> indices_;
  std::vector<std::unique_ptr<uint8_t[]>> masks_;
};

// The outputs of a call, whose shapes are known.
class CallOutputs {
 public:
  explicit CallOutputs(const Arrays& shapes) : arrays_(shapes) {
    for (tf_lstm_ops_array& array : arrays_) {
      outputs_.push_back(std::make_unique<Output>(Elements(array)));
      array.data = outputs_.back()->data();
    }
  }
  tf_lstm_ops_array* data() { return arrays_.data(); }
  int32_t count() const { return static_cast<int32_t>(arrays_.size()); }

 private:
  Arrays arrays_;
  std::vector<std::unique_ptr<Output>> outputs_;
};

// Sets the shapes of the outputs. Returns whether the inputs fit.
inline bool InferShapes(const tf_lstm_ops_session* session,
                        const CallInputs& inputs, Arrays* outputs) {
  tf_lstm_ops_error error = NewError();
  const int32_t code = tf_lstm_ops_session_infer_shapes(
      session, inputs.arrays().data(), inputs.count(), outputs->data(),
      static_cast<int32_t>(outputs->size()), &error);
  return Succeeded(code, error, TF_LSTM_OPS_INVALID_ARGUMENT);
}

// The elements of the largest value in a call of a file that can be opened. It
// makes each value the output of a copy of the file.
inline int64_t LargestValue(File file, const CallInputs& inputs) {
  if (!Layout(file).is_graph) return 0;
  const size_t values = ValuesOf(file), size = file.size();
  const std::unique_ptr<void, decltype(&std::free)> copy(
      std::aligned_alloc(64, size), std::free);
  Require(copy != nullptr, "memory of a copy");
  int64_t largest = 0;
  for (size_t value = 0; value < values; ++value) {
    const Layout layout(file);
    for (size_t k = 0; k < layout.outputs; ++k) {
      Store<uint32_t>(&file, layout.outputs_at + kArgumentBytes * k, value);
    }
    std::copy(file.begin(), file.end(), static_cast<uint8_t*>(copy.get()));
    tf_lstm_ops_session* session = nullptr;
    // A mask or an index is no output.
    if (tf_lstm_ops_session_open_data(copy.get(), size, nullptr, &session,
                                      nullptr)) {
      continue;
    }
    Arrays outputs = NewArrays(static_cast<int32_t>(layout.outputs));
    const bool fits = InferShapes(session, inputs, &outputs);
    tf_lstm_ops_session_close(session);
    if (!fits) return kManyElements;
    largest = std::max(largest, Elements(outputs[0]));
  }
  return largest;
}

// A call whose values have at most `most` elements. Returns whether it ran.
inline bool RunArrays(const tf_lstm_ops_session* session, const File& file,
                      const tf_lstm_ops_session_info& info, int64_t most,
                      Random* random) {
  CallInputs inputs(session, info.input_count,
                    static_cast<int64_t>(random->Below(4)),
                    static_cast<int64_t>(random->Below(8)), random);
  Arrays shapes = NewArrays(info.output_count);
  if (!InferShapes(session, inputs, &shapes) ||
      LargestValue(file, inputs) > most) {
    return false;
  }
  inputs.Fill(true, random);
  const bool is_wrong = random->OneIn(8);
  if (is_wrong) {
    tf_lstm_ops_array& one = shapes[random->Below(shapes.size())];
    ++one.shape[random->Below(one.rank)];
  }
  CallOutputs outputs(shapes);
  tf_lstm_ops_error error = NewError();
  const int32_t code = tf_lstm_ops_session_run_arrays(
      session, inputs.arrays().data(), inputs.count(), outputs.data(),
      outputs.count(), &error);
  const bool may_fail = is_wrong || inputs.has_indices();
  const bool ran = Succeeded(
      code, error, may_fail ? TF_LSTM_OPS_INVALID_ARGUMENT : TF_LSTM_OPS_OK);
  Require(!(is_wrong && ran), "a wrong shape of an output was accepted");
  return true;
}

// The shapes of the outputs of a stream.
inline Arrays StreamOutputs(const tf_lstm_ops_session* session, int32_t count,
                            int64_t batch, int64_t steps) {
  Arrays outputs = NewArrays(count);
  tf_lstm_ops_error error = NewError();
  for (int32_t k = 0; k < count; ++k) {
    Require(!tf_lstm_ops_session_get_output(session, k, &outputs[k], nullptr,
                                            &error),
            "get_output");
    outputs[k].shape[0] = batch;
    if (outputs[k].shape[1] < 0) outputs[k].shape[1] = steps;
    for (int axis = 2; axis < outputs[k].rank; ++axis) {
      Require(outputs[k].shape[axis] >= 0, "sizes of an output of a stream");
    }
  }
  return outputs;
}

// The next steps of a stream.
inline void RunStreamArrays(const tf_lstm_ops_session* session,
                            const tf_lstm_ops_session_info& info,
                            tf_lstm_ops_stream* stream, int64_t batch,
                            Random* random) {
  const auto steps = static_cast<int64_t>(1 + random->Below(5));
  CallInputs inputs(session, info.input_count, batch, steps, random);
  inputs.Fill(random->OneIn(20), random);
  CallOutputs outputs(StreamOutputs(session, info.output_count, batch, steps));
  tf_lstm_ops_error error = NewError();
  // Also where a shape or a mask of the inputs is wrong.
  Succeeded(tf_lstm_ops_stream_run_arrays(stream, inputs.arrays().data(),
                                          inputs.count(), outputs.data(),
                                          outputs.count(), &error),
            error, TF_LSTM_OPS_INVALID_ARGUMENT);
}

#endif  // TF_LSTM_OPS_TESTS_SESSION_FUZZ_ARRAYS_H_
