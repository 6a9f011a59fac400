// x * scale + offset, for each channel.
#include "session/layers/bands.h"
#include "session/layers/elementwise.h"
#include "session/layers/layer_kinds.h"
#include "session/layers/shapes.h"

namespace tf_lstm_ops::session {
namespace {

class Affine final : public Layer {
 public:
  Affine(const float* scale, const float* offset, int64_t channels)
      : scale_(scale), offset_(offset), channels_(channels) {}

  bool Infer(const Shape* in, int, Shape* out, Error* error) const override {
    out[0] = in[0];
    return RequireChannels(in[0], channels_, error);
  }

  void Run(const LayerCall& call) const override {
    const float* x = call.in[0].floats();
    float* y = call.out[0].floats();
    ForRows(call.in[0].shape.rows(), channels_, kElementTime, call.threads,
            [&](int64_t first, int64_t rows) {
              for (int64_t r = first; r < first + rows; ++r) {
                Map(x + r * channels_, channels_, y + r * channels_,
                    [scale = scale_, offset = offset_](float z, int64_t c) {
                      return z * scale[c] + offset[c];
                    });
              }
            });
  }

  bool works_in_place() const override { return true; }

 private:
  const float* const scale_;
  const float* const offset_;
  const int64_t channels_;
};

}  // namespace

std::unique_ptr<Layer> ReadAffine(NodeReader* reader) {
  const int64_t channels = reader->InputSize();
  const float* scale = reader->Array(0, kKernel, true, {channels});
  const float* offset = reader->Array(0, kBias, true, {channels});
  if (!reader->ok()) return nullptr;
  return std::make_unique<Affine>(scale, offset, channels);
}

}  // namespace tf_lstm_ops::session
