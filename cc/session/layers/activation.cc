// Activation layers: a function of each element, or of each row.
#include "session/layers/activation_function.h"
#include "session/layers/bands.h"
#include "session/layers/elementwise.h"
#include "session/layers/layer_kinds.h"
#include "session/layers/shapes.h"

namespace tf_lstm_ops::session {
namespace {

class ActivationLayer final : public Layer {
 public:
  // `size` of the last axis, 0: any.
  ActivationLayer(const ActivationFunction& function, int64_t size)
      : function_(function), size_(size) {}

  bool Infer(const Shape* in, int, Shape* out, Error* error) const override {
    out[0] = in[0];
    if (size_ > 0) return RequireChannels(in[0], size_, error);
    return RequireMinRank(in[0], 2, error);
  }

  void Run(const LayerCall& call) const override {
    const Tensor& x = call.in[0];
    const int64_t count = x.shape.Count();
    if (count == 0) return;
    const int64_t width = function_.is_of_rows() ? x.shape.last() : 1;
    ForRows(count / width, width, function_.element_time() + kElementTime,
            call.threads, [&](int64_t first, int64_t rows) {
              function_.Apply(x.floats() + first * width, rows, width,
                              call.out[0].floats() + first * width);
            });
  }

  bool works_in_place() const override { return true; }

 private:
  const ActivationFunction function_;
  const int64_t size_;
};

// z if z > 0, else alpha z. `alpha` repeats along the last axes.
class PRelu final : public Layer {
 public:
  PRelu(const float* alpha, int64_t size) : alpha_(alpha), size_(size) {}

  bool Infer(const Shape* in, int, Shape* out, Error* error) const override {
    out[0] = in[0];
    if (!RequireMinRank(in[0], 2, error)) return false;
    int64_t last = 1;  // elements of the last axes
    for (int k = in[0].rank - 1; k > 0 && last < size_; --k) {
      if (in[0].dims[k] == kUnknown) return true;
      if (in[0].dims[k] == 0) return true;
      if (__builtin_mul_overflow(last, in[0].dims[k], &last)) break;
    }
    return RequireSize("the number of elements of the last axes of its input",
                       last, size_, error);
  }

  void Run(const LayerCall& call) const override {
    const Tensor& x = call.in[0];
    const int64_t count = x.shape.Count();
    ForRows(count / size_, size_, kElementTime, call.threads,
            [&](int64_t first, int64_t rows) {
              for (int64_t r = first; r < first + rows; ++r) {
                Map(x.floats() + r * size_, size_,
                    call.out[0].floats() + r * size_,
                    [alpha = alpha_](float z, int64_t k) {
                      return PositivePart(z) + alpha[k] * NegativePart(z);
                    });
              }
            });
  }

  bool works_in_place() const override { return true; }

 private:
  const float* const alpha_;
  const int64_t size_;
};

}  // namespace

std::unique_ptr<Layer> ReadActivation(NodeReader* reader) {
  const ActivationFunction function = ReadFunction(reader, kPRelu);
  const bool is_prelu = function.number == kPRelu;
  const int64_t size = reader->InputSize(is_prelu ? 1 : 0);
  reader->Units(size, size);
  reader->HiddenSize(size, size);
  const float* alpha =
      is_prelu ? reader->Array(0, kKernel, true, {size}) : nullptr;
  if (!reader->ok()) return nullptr;
  if (is_prelu) return std::make_unique<PRelu>(alpha, size);
  return std::make_unique<ActivationLayer>(function, size);
}

}  // namespace tf_lstm_ops::session
