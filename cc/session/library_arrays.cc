// The functions of include/tf_lstm_ops.h that have arguments of the type
// tf_lstm_ops_array.

#include <cinttypes>
#include <new>
#include <vector>

#include "session/library.h"

using tf_lstm_ops::session::ComputingMode;
using tf_lstm_ops::session::Error;
using tf_lstm_ops::session::Fail;
using tf_lstm_ops::session::Graph;
using tf_lstm_ops::session::IsGiven;
using tf_lstm_ops::session::kMaxArguments;
using tf_lstm_ops::session::kMaxRank;
using tf_lstm_ops::session::SessionInputs;
using tf_lstm_ops::session::Shape;
using tf_lstm_ops::session::Tensor;
using tf_lstm_ops::session::Try;
using tf_lstm_ops::session::Type;
using tf_lstm_ops::session::ValidSteps;
namespace codes = tf_lstm_ops::session;

namespace {

static_assert(kMaxRank == TF_LSTM_OPS_MAX_RANK);
static_assert(sizeof(tf_lstm_ops_array) == 80);

// The arrays of a caller. Only those that are read are initialised, which
// saves time in short calls.
struct Arguments {
  alignas(Tensor) unsigned char memory[kMaxArguments * sizeof(Tensor)];
  Type types[kMaxArguments];
  ValidSteps valid[kMaxArguments];

  Tensor* arrays() { return reinterpret_cast<Tensor*>(memory); }
  SessionInputs inputs() { return {arrays(), types, valid}; }
};

bool CheckStruct(const char* name, int index, const tf_lstm_ops_array& array,
                 Error* error) {
  if (array.struct_size == sizeof(array)) return true;
  return Fail(error, codes::kInvalidArgument,
              "%s[%d].struct_size is %" PRIu32 ", must be %zu", name, index,
              array.struct_size, sizeof(array));
}

bool CheckCount(const char* name, const tf_lstm_ops_array* arrays,
                int32_t count, int wanted, Error* error) {
  if (!IsGiven(arrays, name, error)) return false;
  if (count != wanted) {
    return Fail(error, codes::kInvalidArgument,
                "the number of %s is %" PRId32 ", must be %d", name, count,
                wanted);
  }
  for (int32_t k = 0; k < count; ++k) {
    if (!CheckStruct(name, k, arrays[k], error)) return false;
  }
  return true;
}

bool Read(const char* name, const tf_lstm_ops_array* arrays, int32_t count,
          int wanted, Arguments* arguments, Error* error) {
  if (!CheckCount(name, arrays, count, wanted, error)) return false;
  for (int32_t k = 0; k < count; ++k) {
    const tf_lstm_ops_array& from = arrays[k];
    if (from.rank < 1 || from.rank > kMaxRank) {
      return Fail(error, codes::kInvalidArgument,
                  "%s[%" PRId32 "].rank is %" PRId32 ", must be from 1 to %d",
                  name, k, from.rank, kMaxRank);
    }
    if (from.type != TF_LSTM_OPS_FLOAT32 && from.type != TF_LSTM_OPS_INT32) {
      return Fail(error, codes::kInvalidArgument,
                  "%s[%" PRId32 "].type is %" PRId32 ", must be 0 or 1", name,
                  k, from.type);
    }
    Tensor& to = *new (arguments->arrays() + k) Tensor;
    for (int axis = 0; axis < from.rank; ++axis) {
      const int64_t size = from.shape[axis];
      if (size < 0) {
        return Fail(error, codes::kInvalidArgument,
                    "%s[%" PRId32 "].shape[%d] is %" PRId64
                    ", must not be negative",
                    name, k, axis, size);
      }
      to.shape.Append(size);
    }
    to.data = from.data;
    arguments->types[k] = static_cast<Type>(from.type);
    if (from.mask_type != TF_LSTM_OPS_MASK &&
        from.mask_type != TF_LSTM_OPS_LENGTHS) {
      return Fail(error, codes::kInvalidArgument,
                  "%s[%" PRId32 "].mask_type is %" PRId32 ", must be 0 or 1",
                  name, k, from.mask_type);
    }
    const bool has_lengths = from.mask_type == TF_LSTM_OPS_LENGTHS;
    arguments->valid[k] = {
        has_lengths ? nullptr : static_cast<const uint8_t*>(from.mask),
        has_lengths ? static_cast<const int32_t*>(from.mask) : nullptr};
  }
  return true;
}

// Outputs are always of floats.
bool ReadOutputs(const tf_lstm_ops_array* outputs, int32_t count,
                 const Graph& graph, Arguments* arguments, Error* error) {
  if (!Read("outputs", outputs, count, graph.output_count(), arguments,
            error)) {
    return false;
  }
  for (int32_t k = 0; k < count; ++k) {
    if (outputs[k].type == TF_LSTM_OPS_FLOAT32) continue;
    return Fail(error, codes::kInvalidArgument,
                "outputs[%" PRId32 "].type is %" PRId32 ", must be %d", k,
                outputs[k].type, TF_LSTM_OPS_FLOAT32);
  }
  return true;
}

// Sets what describes an array, without its data.
void Describe(const Shape& shape, Type type, tf_lstm_ops_array* array) {
  array->type = static_cast<int32_t>(type);
  array->rank = shape.rank;
  array->mask_type = TF_LSTM_OPS_MASK;
  for (int axis = 0; axis < kMaxRank; ++axis) {
    array->shape[axis] = axis < shape.rank ? shape.dims[axis] : 0;
  }
  array->data = nullptr;
  array->mask = nullptr;
}

// The shape of a value. A stream computes any number of steps.
Shape ShapeOf(const Graph& graph, int value) {
  Shape shape = graph.shapes[value];
  if (graph.can_stream() && graph.values[value].is_sequence) {
    shape.dims[1] = codes::kUnknown;
  }
  return shape;
}

bool CheckIndex(int32_t index, int count, Error* error) {
  if (index >= 0 && index < count) return true;
  return Fail(error, codes::kInvalidArgument,
              "index is %" PRId32 ", must be from 0 to %d", index, count - 1);
}

// Describes one of `count` arrays by describe(array).
template <class Describe>
int32_t DescribeOne(const tf_lstm_ops_session* session, int32_t index,
                    tf_lstm_ops_array* array, tf_lstm_ops_error* error,
                    const Describe& describe) {
  return Try(error, [&](Error* failure) {
    return IsGiven(session, "session", failure) &&
           IsGiven(array, "array", failure) &&
           CheckStruct("array", index, *array, failure) && describe(failure);
  });
}

}  // namespace

int32_t tf_lstm_ops_session_get_input(const tf_lstm_ops_session* session,
                                      int32_t index, tf_lstm_ops_array* input,
                                      const char** name,
                                      tf_lstm_ops_error* error) {
  return DescribeOne(session, index, input, error, [&](Error* failure) {
    const Graph& graph = session->session.graph();
    if (!CheckIndex(index, graph.input_count(), failure)) return false;
    Describe(ShapeOf(graph, index), graph.values[index].type, input);
    if (name) *name = graph.inputs[index].name;
    return true;
  });
}

int32_t tf_lstm_ops_session_get_output(const tf_lstm_ops_session* session,
                                       int32_t index, tf_lstm_ops_array* output,
                                       const char** name,
                                       tf_lstm_ops_error* error) {
  return DescribeOne(session, index, output, error, [&](Error* failure) {
    const Graph& graph = session->session.graph();
    if (!CheckIndex(index, graph.output_count(), failure)) return false;
    const auto value = static_cast<int>(graph.outputs[index].value);
    Describe(ShapeOf(graph, value), Type::kFloat, output);
    if (name) *name = graph.outputs[index].name;
    return true;
  });
}

int32_t tf_lstm_ops_session_get_state(const tf_lstm_ops_session* session,
                                      int32_t index, tf_lstm_ops_array* state,
                                      tf_lstm_ops_error* error) {
  return DescribeOne(session, index, state, error, [&](Error* failure) {
    const std::vector<Shape>& shapes = session->session.state_shapes();
    if (!CheckIndex(index, static_cast<int>(shapes.size()), failure)) {
      return false;
    }
    Shape shape;
    shape.Append(1);
    for (int k = 0; k < shapes[index].rank; ++k) {
      shape.Append(shapes[index].dims[k]);
    }
    Describe(shape, Type::kFloat, state);
    return true;
  });
}

int32_t tf_lstm_ops_session_infer_shapes(const tf_lstm_ops_session* session,
                                         const tf_lstm_ops_array* inputs,
                                         int32_t input_count,
                                         tf_lstm_ops_array* outputs,
                                         int32_t output_count,
                                         tf_lstm_ops_error* error) {
  return Try(error, [&](Error* failure) {
    if (!IsGiven(session, "session", failure)) return false;
    const Graph& graph = session->session.graph();
    Arguments in;
    Shape shapes[kMaxArguments];
    if (!Read("inputs", inputs, input_count, graph.input_count(), &in,
              failure) ||
        !CheckCount("outputs", outputs, output_count, graph.output_count(),
                    failure) ||
        !session->session.Infer(in.inputs(), shapes, failure)) {
      return false;
    }
    for (int32_t k = 0; k < output_count; ++k) {
      Describe(shapes[k], Type::kFloat, &outputs[k]);
    }
    return true;
  });
}

int32_t tf_lstm_ops_session_run_arrays(const tf_lstm_ops_session* session,
                                       const tf_lstm_ops_array* inputs,
                                       int32_t input_count,
                                       tf_lstm_ops_array* outputs,
                                       int32_t output_count,
                                       tf_lstm_ops_error* error) {
  return Try(error, [&](Error* failure) {
    if (!IsGiven(session, "session", failure)) return false;
    const ComputingMode mode;
    const Graph& graph = session->session.graph();
    Arguments in, out;
    return Read("inputs", inputs, input_count, graph.input_count(), &in,
                failure) &&
           ReadOutputs(outputs, output_count, graph, &out, failure) &&
           session->session.Run(in.inputs(), out.arrays(), failure);
  });
}

int32_t tf_lstm_ops_stream_run_arrays(tf_lstm_ops_stream* stream,
                                      const tf_lstm_ops_array* inputs,
                                      int32_t input_count,
                                      tf_lstm_ops_array* outputs,
                                      int32_t output_count,
                                      tf_lstm_ops_error* error) {
  return Try(error, [&](Error* failure) {
    if (!IsGiven(stream, "stream", failure)) return false;
    const ComputingMode mode;
    const Graph& graph = stream->session.graph();
    Arguments in, out;
    return Read("inputs", inputs, input_count, graph.input_count(), &in,
                failure) &&
           ReadOutputs(outputs, output_count, graph, &out, failure) &&
           stream->stream.RunArrays(in.inputs(), out.arrays(), failure);
  });
}
