// Tests of core/reserve_layout.h, and of RegionsOf in core/multi_layer_rnn.h.
#include "core/reserve_layout.h"

#include <cstdint>
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

TEST(PartsOfTheReserveAreConsecutive) {
  const RnnModel model = Model(CellKind::kLstm, 3);
  const MultiLayerReserveLayout layout(model, 7, 2);
  int64_t end = 0;
  for (int64_t p = 0; p < 6; ++p) {
    CHECK_EQ(layout.Activations(p), end);
    end += 7 * 5 * 4;
  }
  for (int64_t layer = 0; layer < 2; ++layer) {
    CHECK_EQ(layout.LayerOutput(layer), end);
    end += 7 * 6;
  }
  CHECK_EQ(layout.size(), end);
}

TEST(ReserveLayoutOfAVanillaRnnHasNoActivations) {
  const MultiLayerReserveLayout layout(Model(CellKind::kTanh, 4), 7, 3);
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
