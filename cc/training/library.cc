// The functions of include/tf_lstm_ops.h with a tf_lstm_ops_layer.

#include "session/library.h"

#include <cinttypes>
#include <cstring>
#include <memory>
#include <vector>

#include "backends/cpu/team/thread_team.h"
#include "session/computing_mode.h"
#include "training/arrays.h"
#include "training/layer.h"

using tf_lstm_ops::kMaxThreads;
using tf_lstm_ops::Shape;
using tf_lstm_ops::Signature;
using tf_lstm_ops::Status;
using tf_lstm_ops::session::ComputingMode;
using tf_lstm_ops::session::Error;
using tf_lstm_ops::session::Fail;
using tf_lstm_ops::session::IsGiven;
using tf_lstm_ops::session::Try;
using tf_lstm_ops::training::Arrays;
using tf_lstm_ops::training::kMask;
using tf_lstm_ops::training::Layer;
using tf_lstm_ops::training::Pass;
namespace codes = tf_lstm_ops::session;

struct tf_lstm_ops_layer {
  Layer layer;
};

namespace {

// Whether a status is OK. The codes are TensorFlow's, too.
bool Ok(const Status& status, Error* error) {
  return status.ok() || Fail(error, static_cast<codes::Code>(status.code()),
                             "%s", status.message().c_str());
}

bool CheckOptions(const tf_lstm_ops_layer_options* options, Error* error) {
  if (!IsGiven(options, "options", error)) return false;
  if (options->struct_size == sizeof(*options)) return true;
  return Fail(error, codes::kInvalidArgument,
              "options.struct_size is %" PRIu32 ", must be %zu",
              options->struct_size, sizeof(*options));
}

bool CheckCount(const char* what, const tf_lstm_ops_array* arrays,
                int32_t count, size_t want, Error* error) {
  if (!IsGiven(arrays, what, error)) return false;
  if (count >= 0 && static_cast<size_t>(count) == want) return true;
  return Fail(error, codes::kInvalidArgument,
              "the number of %s is %" PRId32 ", must be %zu", what, count,
              want);
}

bool CheckCounts(const Signature& signature, const tf_lstm_ops_array* inputs,
                 int32_t input_count, const tf_lstm_ops_array* outputs,
                 int32_t output_count, Error* error) {
  return CheckCount("inputs", inputs, input_count, signature.inputs.size() - 1,
                    error) &&
         CheckCount("outputs", outputs, output_count, signature.outputs.size(),
                    error);
}

// Runs a pass of a layer. Each op has one mask, which is no array.
int32_t Run(tf_lstm_ops_layer* layer, bool is_forward, int32_t threads,
            const tf_lstm_ops_array* inputs, int32_t input_count,
            tf_lstm_ops_array* outputs, int32_t output_count,
            tf_lstm_ops_error* error) {
  return Try(error, [&](Error* failure) {
    if (!IsGiven(layer, "layer", failure)) return false;
    if (threads < 1 || threads > kMaxThreads) {
      return Fail(failure, codes::kInvalidArgument,
                  "threads is %" PRId32 ", must be from 1 to %d", threads,
                  kMaxThreads);
    }
    Pass* pass = layer->layer.gradient.get();
    if (is_forward) pass = layer->layer.forward.get();
    const Signature& signature = pass->signature();
    if (!CheckCounts(signature, inputs, input_count, outputs, output_count,
                     failure)) {
      return false;
    }
    const ComputingMode mode;
    const Arrays arrays(signature, !is_forward, layer->layer.type, inputs,
                        outputs);
    return Ok(pass->Compute(arrays, threads), failure);
  });
}

// The name of an argument; the mask does not count.
template <class List>
const char* NameOf(const List& arguments, int32_t index) {
  for (const auto& argument : arguments) {
    if (std::strcmp(argument.name, kMask) == 0) continue;
    if (index-- == 0) return argument.name;
  }
  return nullptr;
}

}  // namespace

int32_t tf_lstm_ops_layer_open(const tf_lstm_ops_layer_options* options,
                               tf_lstm_ops_layer** layer,
                               tf_lstm_ops_error* error) {
  return Try(error, [&](Error* failure) {
    if (!CheckOptions(options, failure) || !IsGiven(layer, "layer", failure)) {
      return false;
    }
    auto made = std::make_unique<tf_lstm_ops_layer>();
    if (!Ok(MakeLayer(*options, &made->layer), failure)) return false;
    *layer = made.release();
    return true;
  });
}

void tf_lstm_ops_layer_close(tf_lstm_ops_layer* layer) { delete layer; }

const char* tf_lstm_ops_layer_argument(const tf_lstm_ops_layer* layer,
                                       int32_t list, int32_t index) {
  if (!layer || index < 0) return nullptr;
  const Signature& forward = layer->layer.forward->signature();
  const Signature& gradient = layer->layer.gradient->signature();
  switch (list) {
    case TF_LSTM_OPS_FORWARD_INPUTS:
      return NameOf(forward.inputs, index);
    case TF_LSTM_OPS_FORWARD_OUTPUTS:
      return NameOf(forward.outputs, index);
    case TF_LSTM_OPS_BACKWARD_INPUTS:
      return NameOf(gradient.inputs, index);
    case TF_LSTM_OPS_BACKWARD_OUTPUTS:
      return NameOf(gradient.outputs, index);
    default:
      return nullptr;
  }
}

int32_t tf_lstm_ops_layer_infer_shapes(const tf_lstm_ops_layer* layer,
                                       const tf_lstm_ops_array* inputs,
                                       int32_t input_count,
                                       tf_lstm_ops_array* outputs,
                                       int32_t output_count,
                                       tf_lstm_ops_error* error) {
  return Try(error, [&](Error* failure) {
    if (!IsGiven(layer, "layer", failure)) return false;
    const auto& pass = *layer->layer.forward;
    const Signature& signature = pass.signature();
    std::vector<Shape> shapes;
    if (!CheckCounts(signature, inputs, input_count, outputs, output_count,
                     failure) ||
        !Ok(pass.Infer(
                Arrays(signature, false, layer->layer.type, inputs, outputs),
                &shapes),
            failure)) {
      return false;
    }
    for (int32_t k = 0; k < output_count; ++k) {
      tf_lstm_ops_array described = {};
      described.struct_size = sizeof(described);
      described.type = layer->layer.type;
      described.rank = shapes[k].rank();
      for (int axis = 0; axis < described.rank; ++axis) {
        described.shape[axis] = shapes[k].dim(axis);
      }
      outputs[k] = described;
    }
    return true;
  });
}

int32_t tf_lstm_ops_layer_forward(tf_lstm_ops_layer* layer, int32_t threads,
                                  const tf_lstm_ops_array* inputs,
                                  int32_t input_count,
                                  tf_lstm_ops_array* outputs,
                                  int32_t output_count,
                                  tf_lstm_ops_error* error) {
  return Run(layer, true, threads, inputs, input_count, outputs, output_count,
             error);
}

int32_t tf_lstm_ops_layer_backward(tf_lstm_ops_layer* layer, int32_t threads,
                                   const tf_lstm_ops_array* inputs,
                                   int32_t input_count,
                                   tf_lstm_ops_array* outputs,
                                   int32_t output_count,
                                   tf_lstm_ops_error* error) {
  return Run(layer, false, threads, inputs, input_count, outputs, output_count,
             error);
}
