// Embedding: rows of a table, by indices.
#include <algorithm>
#include <cstdio>

#include "session/layers/bands.h"
#include "session/layers/layer_kinds.h"
#include "session/layers/shapes.h"

namespace tf_lstm_ops::session {
namespace {

class Embedding final : public Layer {
 public:
  Embedding(const GateMatrices<const float>& table, int64_t rows, int64_t units,
            bool returns_mask)
      : table_(table),
        rows_(rows),
        units_(units),
        returns_mask_(returns_mask) {}

  int output_count() const override { return returns_mask_ ? 2 : 1; }
  Type output_type(int k) const override {
    return k == 0 ? Type::kFloat : Type::kMask;
  }

  bool Infer(const Shape* in, int, Shape* out, Error* error) const override {
    if (in[0].rank >= kMaxRank) {
      return Fail(error, error->code,
                  "its input has %d axes, must have %d or fewer", in[0].rank,
                  kMaxRank - 1);
    }
    out[0] = in[0];
    out[0].Append(units_);
    if (returns_mask_) out[1] = in[0];
    return true;
  }

  bool CheckValues(const Tensor& indices, Error* error) const override {
    const int32_t* at = indices.ints();
    const int64_t count = indices.shape.Count();
    const auto rows = static_cast<uint32_t>(rows_);
    bool is_wrong = false;
    for (int64_t k = 0; k < count; ++k) {
      is_wrong |= static_cast<uint32_t>(at[k]) >= rows;
    }
    if (!is_wrong) return true;
    int64_t k = 0;
    while (static_cast<uint32_t>(at[k]) < rows) ++k;
    return FailAt(indices.shape, k, at[k], error);
  }

  void Run(const LayerCall& call) const override {
    const int32_t* at = call.in[0].ints();
    float* y = call.out[0].floats();
    const int64_t count = call.in[0].shape.Count();
    ForRows(count, units_, kElementTime, call.threads,
            [&](int64_t first, int64_t rows) {
              for (int64_t k = first; k < first + rows; ++k) {
                CopyRow(at[k], y + k * units_);
              }
            });
    if (!returns_mask_) return;
    bool* mask = call.out[1].mask();
    for (int64_t k = 0; k < count; ++k) mask[k] = at[k] != 0;
  }

 private:
  void CopyRow(int64_t row, float* y) const {
    const int64_t first = row * units_;
    if (table_.int8) {
      const float scale = table_.scales[row];
      for (int64_t k = 0; k < units_; ++k) {
        y[k] = scale * static_cast<float>(table_.int8[first + k]);
      }
    } else {
      table_.Read(0, [&](const auto* from) {
        for (int64_t k = 0; k < units_; ++k) y[k] = ToFloat(from[first + k]);
      });
    }
  }
  static float ToFloat(float value) { return value; }
  static float ToFloat(BFloat16 value) { return value.ToFloat(); }

  // Names element k of the indices, as in "[0, 3]".
  bool FailAt(const Shape& shape, int64_t k, int32_t value,
              Error* error) const {
    char position[24 * kMaxRank];
    int size = 0;
    for (int axis = 0; axis < shape.rank; ++axis) {
      const int64_t behind = shape.Count(axis + 1, shape.rank);
      size += std::snprintf(position + size, sizeof(position) - size, "%s%lld",
                            axis == 0 ? "" : ", ",
                            static_cast<long long>(k / behind));
      k %= behind;
    }
    return Fail(error, kInvalidArgument,
                "element [%s] is %d, must be 0 to %lld: the embedding has %lld "
                "rows",
                position, value, static_cast<long long>(rows_ - 1),
                static_cast<long long>(rows_));
  }

  const GateMatrices<const float> table_;
  const int64_t rows_, units_;
  const bool returns_mask_;
};

}  // namespace

std::unique_ptr<Layer> ReadEmbedding(NodeReader* reader) {
  const int64_t rows = reader->InputSize();
  const int64_t units = reader->Units();
  const bool returns_mask = reader->Flags(kReturnsMask) != 0;
  const GateMatrices<const float> table = reader->Table(kKernel, rows, units);
  if (!reader->ok()) return nullptr;
  return std::make_unique<Embedding>(table, rows, units, returns_mask);
}

}  // namespace tf_lstm_ops::session
