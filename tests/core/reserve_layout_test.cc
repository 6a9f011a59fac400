// Tests of core/reserve_layout.h, and of RegionsOf in core/multi_layer_rnn.h.
#include "core/reserve_layout.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "core/multi_layer_rnn.h"
#include "harness.h"

namespace tf_lstm_ops {
namespace {

RnnModel Model(CellKind cell, int64_t hidden) {
  RnnModel model;
  model.cell = cell;
  model.layers = 3;
  model.directions = 2;
  model.input_size = 5;
  model.cell_size = 4;
  model.hidden_size = hidden;
  return model;
}

// Offset and size.
using Part = std::pair<int64_t, int64_t>;

// Checks that the gaps of `layout` are what `parts` leaves out, in order.
void CheckGaps(const MultiLayerReserveLayout& layout,
               const std::vector<Part>& parts) {
  const auto gaps = layout.Gaps();
  size_t n = 0;
  for (size_t p = 0; p < parts.size(); ++p) {
    const int64_t end = parts[p].first + parts[p].second;
    const int64_t next =
        p + 1 < parts.size() ? parts[p + 1].first : layout.size();
    if (end == next) continue;
    CHECK(n < gaps.size());
    CHECK_EQ(gaps[n].offset, end);
    CHECK_EQ(gaps[n].size, next - end);
    ++n;
  }
  CHECK_EQ(gaps.size(), n);
}

// Checks that the parts are consecutive, each from a multiple of `alignment`
// on. Returns their end.
int64_t End(const std::vector<Part>& parts, int64_t alignment) {
  int64_t end = 0;
  for (const auto& [offset, size] : parts) {
    CHECK_EQ(offset, (end + alignment - 1) / alignment * alignment);
    end = offset + size;
  }
  return (end + alignment - 1) / alignment * alignment;
}

TEST(ReserveLayoutOfTheCpu) {
  const RnnModel model = Model(CellKind::kLstm, 3);
  const MultiLayerReserveLayout layout(model, {7, 2});
  std::vector<Part> parts;
  for (int64_t p = 0; p < 6; ++p) {
    parts.emplace_back(layout.Activations(p), 7 * 5 * 4);
  }
  for (int64_t layer = 0; layer < 2; ++layer) {
    parts.emplace_back(layout.LayerOutput(layer), 7 * 6);
  }
  CHECK_EQ(layout.size(), End(parts, 1));
  CHECK_EQ(layout.Gaps().size(), 0u);
  CHECK_EQ(layout.mask_size(), 0);
  CHECK_EQ(layout.unprojected_size(), 0);
}

TEST(ReserveLayoutWithAllPartsAligned) {
  const RnnModel model = Model(CellKind::kGru, 4);
  ReserveContents contents;
  contents.rows = 7;
  contents.output_layers = 3;
  contents.has_unprojected_h = contents.has_dropout_mask = true;
  contents.alignment = 64;
  const MultiLayerReserveLayout layout(model, contents);
  CHECK_EQ(layout.activations_size(), 7 * 4 * 4);
  CHECK_EQ(layout.unprojected_size(), 7 * 4);
  CHECK_EQ(layout.output_size(), 7 * 8);
  CHECK_EQ(layout.mask_size(), 2 * 7 * 8);
  std::vector<Part> parts;
  for (int64_t p = 0; p < 6; ++p) {
    parts.emplace_back(layout.Activations(p), layout.activations_size());
  }
  for (int64_t p = 0; p < 6; ++p) {
    parts.emplace_back(layout.UnprojectedH(p), layout.unprojected_size());
  }
  for (int64_t layer = 0; layer < 3; ++layer) {
    parts.emplace_back(layout.LayerOutput(layer), layout.output_size());
  }
  parts.emplace_back(layout.DropoutMask(), layout.mask_size());
  CHECK_EQ(layout.size(), End(parts, 64));
  CheckGaps(layout, parts);
}

TEST(ReserveLayoutOfAVanillaRnnHasNoActivations) {
  const MultiLayerReserveLayout layout(Model(CellKind::kTanh, 4), {7, 3});
  CHECK_EQ(layout.Activations(5), 0);
  CHECK_EQ(layout.size(), 3 * 7 * 8);
}

// The regions of all pseudo-layers cover the parameter buffer without overlap.
TEST(LayerRegionsCoverTheParams) {
  for (const bool skip_input : {false, true}) {
    for (const int64_t hidden : {3, 4}) {
      MultiLayerRnn rnn;
      rnn.model = Model(CellKind::kLstm, hidden);
      rnn.model.skip_input = skip_input;
      if (skip_input) rnn.model.input_size = rnn.model.cell_size;
      CHECK(ParamsLayout::Make(rnn.model, &rnn.params).ok());
      std::vector<int> uses(rnn.params.size());
      for (int64_t layer = 0; layer < 3; ++layer) {
        for (int64_t direction = 0; direction < 2; ++direction) {
          const LayerRegions r = RegionsOf(rnn, layer, direction);
          CHECK_EQ(r.input.rows, skip_input && layer == 0 ? 0 : 16);
          CHECK_EQ(r.recurrent.columns, hidden);
          CHECK_EQ(r.projection.rows, hidden < 4 ? hidden : 0);
          for (const ParamsLayout::Region& region :
               {r.input, r.recurrent, r.projection, r.input_bias,
                r.recurrent_bias}) {
            for (int64_t n = 0; n < region.size(); ++n) {
              ++uses[region.offset + n];
            }
          }
        }
      }
      for (const int count : uses) CHECK_EQ(count, 1);
    }
  }
}

}  // namespace
}  // namespace tf_lstm_ops
