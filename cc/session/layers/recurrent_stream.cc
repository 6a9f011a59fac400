// The states of a recurrent layer in a stream.

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "session/block_lengths.h"
#include "session/layers/recurrent.h"

namespace tf_lstm_ops::session {
namespace {

// States: h [B, P] and, of an LSTM, c [B, H], else null.
struct States {
  float* h;
  float* c;
};

class RecurrentStream : public StreamLayer {
 public:
  RecurrentStream(const RecurrentLayer& layer, int64_t batch, int threads)
      : layer_(layer.fields()),
        frozen_(layer.frozen()),
        batch_(batch),
        threads_(threads),
        h_size_(layer_.hidden_size),
        c_size_(layer_.is_lstm ? layer_.units : 0) {}

  void Prepare(int64_t block_steps, LayerMemory* memory) override {
    block_steps_ = block_steps;
    for (int k = 0; StepsOfLength(k) <= block_steps; ++k) {
      plans_[k] = frozen_.PlanSteps(batch_, StepsOfLength(k), threads_,
                                    &memory->engine);
    }
  }
  void Place(cpu::Scratch<float>* memory) override;
  int64_t scratch_floats() const override {
    return sequence_floats() + (by_row() ? frozen_.row_scratch() : 0);
  }
  void Run(int64_t steps, const LayerCall& call) override;
  float* state(int k) override { return k == 0 ? now_.h : now_.c; }

 private:
  // Of the steps of a layer that returns the last one, whole cache lines.
  int64_t sequence_floats() const {
    if (layer_.keras.return_sequences) return 0;
    constexpr int64_t kLine = 64 / sizeof(float);
    return (batch_ * block_steps_ * h_size_ + kLine - 1) / kLine * kLine;
  }
  // Whether FrozenLayer::RunRow computes the layer.
  bool by_row() const { return plans_[0].way == cpu::ForwardWay::kOneRow; }
  void RunValid(int64_t time, int64_t steps, const float* x, float* y,
                LayerMemory* memory);
  void RunMasked(int64_t steps, const LayerCall& call, float* y);
  void WriteStates(const LayerCall& call) const;

  const RecurrentFields& layer_;
  const cpu::FrozenLayer& frozen_;
  const int64_t batch_;
  const int threads_;
  const int64_t h_size_, c_size_;  // P, and H of an LSTM, else 0
  int64_t block_steps_ = 0;
  States now_ = {};
  States next_ = {};  // written by a step, then exchanged with `now_`
  // By the length of a block.
  std::array<cpu::ForwardPlan, kBlockLengths> plans_;
  RowSteps row_;  // what FrozenLayer::RunRow reads and writes
};

void RecurrentStream::Place(cpu::Scratch<float>* memory) {
  const int64_t least = by_row() ? frozen_.row_floats() : 0;
  for (States* s : {&now_, &next_}) {
    s->h = memory->Take(std::max(least, batch_ * h_size_));
    if (c_size_ > 0) s->c = memory->Take(std::max(least, batch_ * c_size_));
  }
  if (!by_row()) return;
  row_.x_stride = layer_.input_size;
  row_.y_stride = h_size_;
  row_.h = now_.h;
  row_.c = now_.c;
}

void RecurrentStream::Run(int64_t steps, const LayerCall& call) {
  const bool is_sequence = layer_.keras.return_sequences;
  float* y = is_sequence ? call.out[0].floats() : call.memory->stream;
  row_.scratch = call.memory->stream + sequence_floats();
  const bool* valid = call.in_count > 1 ? call.in[1].mask() : nullptr;
  const bool all_valid =
      !valid || std::memchr(valid, 0, batch_ * steps * sizeof(bool)) == nullptr;
  if (all_valid) {
    RunValid(steps, steps, call.in[0].floats(), y, call.memory);
  } else {
    RunMasked(steps, call, y);
  }
  if (!is_sequence) {
    CopyLastSteps(y, batch_, steps, h_size_, call.out[0].floats(), h_size_);
  }
  WriteStates(call);
}

void RecurrentStream::WriteStates(const LayerCall& call) const {
  if (call.out_count > 1) {
    std::copy_n(now_.h, batch_ * h_size_, call.out[1].floats());
  }
  if (call.out_count > 2) {
    std::copy_n(now_.c, batch_ * c_size_, call.out[2].floats());
  }
}

// Computes the first `steps` of `time` steps.
void RecurrentStream::RunValid(int64_t time, int64_t steps, const float* x,
                               float* y, LayerMemory* memory) {
  if (by_row()) {
    row_.steps = steps;
    row_.x = x;
    row_.y = y;
    frozen_.RunRow(row_);
    row_.reverse ^= steps % 2 == 1;
    return;
  }
  LayerForward<float> pass;
  pass.sequence.batch = batch_;
  pass.sequence.time = time;
  pass.sequence.steps = steps;
  pass.sequence.time_major = false;
  const PackedSequence valid(pass.sequence);
  pass.x = x;
  pass.x_stride = layer_.input_size;
  pass.h = y;
  pass.h_stride = h_size_;
  pass.h0 = {now_.h, h_size_};
  pass.final_h = {next_.h, h_size_};
  if (layer_.is_lstm) {
    pass.c0 = {now_.c, layer_.units};
    pass.final_c = {next_.c, layer_.units};
  }
  frozen_.RunSteps(plans_[LengthOf(steps)], valid, &pass, &memory->engine);
  std::swap(now_, next_);
}

// Computes steps of which some are masked, one by one. A masked step changes no
// state: where it is computed, from any x, the states before it are restored.
void RecurrentStream::RunMasked(int64_t steps, const LayerCall& call,
                                float* y) {
  const float* x = call.in[0].floats();
  const bool* valid = call.in[1].mask();
  for (int64_t t = 0; t < steps; ++t) {
    const bool is_skipped = by_row() && !valid[t];
    if (!is_skipped) {
      RunValid(steps, 1, x + t * layer_.input_size, y + t * h_size_,
               call.memory);
    }
    for (int64_t b = 0; b < batch_; ++b) {
      if (valid[b * steps + t]) continue;
      float* h = now_.h + b * h_size_;
      if (!is_skipped) {  // `next_` has the states before
        std::copy_n(next_.h + b * h_size_, h_size_, h);
        std::copy_n(next_.c + b * c_size_, c_size_, now_.c + b * c_size_);
      }
      float* output = y + (b * steps + t) * h_size_;
      if (layer_.keras.zero_output_for_mask) {
        std::fill_n(output, h_size_, 0.0F);
      } else {
        std::copy_n(h, h_size_, output);
      }
    }
  }
}

}  // namespace

std::unique_ptr<StreamLayer> RecurrentLayer::NewStreamLayer(int64_t batch,
                                                            int threads) const {
  return std::make_unique<RecurrentStream>(*this, batch, threads);
}

}  // namespace tf_lstm_ops::session
