#include "session/stream.h"

#include <algorithm>
#include <cinttypes>
#include <cstring>
#include <utility>

#include "session/simple_layers.h"

namespace tf_lstm_ops::session {
namespace {

// Blocks are shorter where an array of a block would have more floats.
constexpr int64_t kMaxBlockFloats = int64_t{1} << 22;

// The largest power of two up to `most`, itself one, and `steps`. With few
// lengths of blocks, one call of each allocates all memory.
int64_t BlockSteps(int64_t steps, int64_t most) {
  while (most > steps) most /= 2;
  return most;
}

// The most steps of a block of `row` floats for each step, at most `most`.
int64_t MaxBlockSteps(int64_t row, int64_t most) {
  return BlockSteps(std::max<int64_t>(kMaxBlockFloats / row, 1), most);
}

int64_t MaxFeatures(const Session& session) {
  return std::max(session.input_size(), session.max_features());
}

// Copies rows of `size` floats between arrays with different strides.
void CopyRows(const float* from, int64_t from_stride, int64_t rows,
              int64_t size, float* to, int64_t to_stride) {
  for (int64_t b = 0; b < rows; ++b) {
    std::copy_n(from + b * from_stride, size, to + b * to_stride);
  }
}

}  // namespace

class Stream::Claim {
 public:
  Claim(Stream* stream, Error* error)
      : flag_(&stream->is_used_),
        is_granted_(!flag_->test_and_set(std::memory_order_acquire)) {
    if (!is_granted_) {
      Fail(error, kFailedPrecondition, "another thread uses the stream");
    }
  }
  ~Claim() {
    if (is_granted_) flag_->clear(std::memory_order_release);
  }
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;

  explicit operator bool() const { return is_granted_; }

 private:
  std::atomic_flag* const flag_;
  const bool is_granted_;
};

bool Stream::Check(const Session& session, int64_t batch, Error* error) {
  if (!session.can_stream()) {
    return Fail(error, kInvalidArgument,
                "the session cannot stream: a layer reads the sequence "
                "backwards: layer %zu of the file, counted from 0",
                session.forward_layers());
  }
  if (batch < 1) {
    return Fail(error, kInvalidArgument,
                "batch is %" PRId64 ", must be 1 or more", batch);
  }
  const int64_t features = std::max(
      {session.max_features(), session.input_size(), session.state_size()});
  int64_t size;
  return ArraySize(batch, kMaxBlockSteps, features, &size) ||
         Fail(error, kInvalidArgument,
              "batch is %" PRId64 ", too large for arrays", batch);
}

Stream::Stream(const Session& session, int64_t batch)
    : session_(session),
      batch_(batch),
      step_inputs_(batch * session.input_size()),
      step_outputs_(batch * session.output_size()),
      block_steps_(
          MaxBlockSteps(batch * MaxFeatures(session), kMaxBlockSteps)) {
  for (size_t k = 0; k < session.layers().size(); ++k) {
    const Layer& layer = session.layers()[k];
    LayerStates& states = states_.emplace_back();
    if (layer.kind == kMasking && !valid_) {
      valid_ = std::make_unique<bool[]>(batch * block_steps_);
    }
    if (layer.kind != kRecurrent) continue;
    states.h_size = layer.hidden_size;
    states.c_size = layer.is_lstm() ? layer.units : 0;
    states.frozen = &session.recurrent(k)->frozen();
    PlanBlocks(&states);
  }
  // One block, in which no two arrays begin at the same place of a page: a load
  // would wait for a store to the same place of another page.
  cpu::Scratch<float> size(nullptr);
  Place(&size);
  arrays_ = std::make_unique<AlignedBuffer>(size.used() * sizeof(float));
  auto* data = static_cast<float*>(arrays_->data());
  std::fill_n(data, size.used(), 0.0F);
  cpu::Scratch<float> scratch(data);
  Place(&scratch);
  for (size_t k = 0; k < states_.size(); ++k) {
    const LayerStates& states = states_[k];
    RowSteps& row = states_[k].row;
    row.x_stride = session.layers()[k].input_size;
    row.y_stride = states.h_size;
    row.h = states.now.h;
    row.c = states.now.c;
    row.scratch = scratch_;
  }
  WarmUp();
}

void Stream::Place(cpu::Scratch<float>* memory) {
  const int64_t rows = batch_ * block_steps_;
  int64_t row_scratch = 0;
  for (size_t k = 0; k < states_.size(); ++k) {
    LayerStates& states = states_[k];
    if (states.h_size == 0) continue;
    const int64_t least = states.by_row() ? states.frozen->row_floats() : 0;
    for (StreamStates* s : {&states.now, &states.next}) {
      s->h = memory->Take(std::max(least, batch_ * states.h_size));
      if (states.c_size == 0) continue;
      s->c = memory->Take(std::max(least, batch_ * states.c_size));
    }
    if (states.by_row()) {
      row_scratch = std::max(row_scratch, states.frozen->row_scratch());
    }
    if (session_.layers()[k].takes_last_step()) {
      sequence_ = memory->Take(rows * states.h_size);
    }
  }
  scratch_ = memory->Take(row_scratch);
  for (float*& buffer : rows_) {
    buffer = memory->Take(rows * session_.max_features());
  }
  if (batch_ == 1) return;
  x_block_ = memory->Take(rows * session_.input_size());
  y_block_ = memory->Take(rows * session_.output_size());
}

// Plans blocks of each length.
void Stream::PlanBlocks(LayerStates* states) {
  for (int k = 0; int64_t{1} << k <= block_steps_; ++k) {
    states->plans[k] = states->frozen->PlanSteps(batch_, int64_t{1} << k,
                                                 session_.threads(), &memory_);
  }
}

void Stream::WarmUp() {
  const int64_t size = batch_ * block_steps_ * MaxFeatures(session_);
  const AlignedBuffer inputs(size * sizeof(float));
  const AlignedBuffer outputs(size * sizeof(float));
  auto* x = static_cast<float*>(inputs.data());
  auto* y = static_cast<float*>(outputs.data());
  std::fill_n(x, size, 0.0F);
  for (size_t k = 0; k < states_.size(); ++k) {
    if (states_[k].h_size == 0 || states_[k].by_row()) continue;
    for (int64_t steps = 1; steps <= block_steps_; steps *= 2) {
      RunValid(k, steps, steps, x, y);
    }
  }
  // Reads the weights of all layers, so that their pages are in memory.
  RunBlock(1, x, true, y);
  ClearStates();
}

void Stream::ClearStates() {
  for (const LayerStates& states : states_) {
    if (states.h_size == 0) continue;
    std::fill_n(states.now.h, batch_ * states.h_size, 0.0F);
    std::fill_n(states.now.c, batch_ * states.c_size, 0.0F);
  }
}

bool Stream::CheckRun(int64_t steps, const float* x, int64_t x_count,
                      const float* y, int64_t y_count, Error* error) const {
  if (steps < 1) {
    return Fail(error, kInvalidArgument,
                "steps is %" PRId64 ", must be 1 or more", steps);
  }
  if (!x || !y) {
    return Fail(error, kInvalidArgument, "%s is null", x ? "y" : "x");
  }
  const int64_t out_steps = session_.returns_sequence() ? steps : 1;
  int64_t wanted_x, wanted_y;
  if (!ArraySize(batch_, steps, session_.input_size(), &wanted_x) ||
      !ArraySize(batch_, out_steps, session_.output_size(), &wanted_y)) {
    return Fail(error, kInvalidArgument,
                "steps is %" PRId64 ", too large for an array", steps);
  }
  if (x_count != wanted_x) {
    return Fail(error, kInvalidArgument,
                "x_count is %" PRId64 ", must be %" PRId64, x_count, wanted_x);
  }
  if (y_count != wanted_y) {
    return Fail(error, kInvalidArgument,
                "y_count is %" PRId64 ", must be %" PRId64, y_count, wanted_y);
  }
  return true;
}

bool Stream::Run(int64_t steps, const float* x, int64_t x_count, float* y,
                 int64_t y_count, Error* error) {
  const bool is_step = steps == 1 && x && y && x_count == step_inputs_ &&
                       y_count == step_outputs_;
  if (!is_step && !CheckRun(steps, x, x_count, y, y_count, error)) return false;
  const Claim claim(this, error);
  if (!claim) return false;
  if (is_step) {
    RunBlock(1, x, true, y);
  } else {
    RunBlocks(steps, x, y);
  }
  return true;
}

void Stream::RunBlocks(int64_t steps, const float* x, float* y) {
  const int64_t inputs = session_.input_size();
  const int64_t outputs = session_.output_size();
  const bool is_sequence = session_.returns_sequence();
  for (int64_t first = 0; first < steps;) {
    const int64_t block = BlockSteps(steps - first, block_steps_);
    const bool is_last = first + block == steps;
    const bool is_whole = batch_ == 1 || block == steps;
    const float* from = x + first * inputs;
    float* to = is_sequence ? y + first * outputs : y;
    if (!is_whole) {
      CopyRows(from, steps * inputs, batch_, block * inputs, x_block_,
               block * inputs);
    }
    const bool writes_y = is_whole || !is_sequence;
    RunBlock(block, is_whole ? from : x_block_, is_last,
             writes_y ? to : y_block_);
    if (!writes_y) {
      CopyRows(y_block_, block * outputs, batch_, block * outputs, to,
               steps * outputs);
    }
    first += block;
  }
}

// Computes one block through all layers. Without a sequence the layers behind
// the last step are computed in the last block only.
void Stream::RunBlock(int64_t steps, const float* x, bool is_last, float* y) {
  const std::vector<Layer>& layers = session_.layers();
  const bool* valid = nullptr;
  int64_t rows = batch_ * steps;
  for (size_t k = 0; k < layers.size(); ++k) {
    const Layer& layer = layers[k];
    float* to = k + 1 == layers.size() ? y : rows_[k % 2];
    if (layer.takes_last_step()) {
      RunRecurrent(k, steps, x, valid, sequence_);
      if (!is_last) return;
      const int64_t width = layer.hidden_size;
      CopyRows(sequence_ + (steps - 1) * width, steps * width, batch_, width,
               to, width);
      rows = batch_;
    } else if (layer.kind == kRecurrent) {
      RunRecurrent(k, steps, x, valid, to);
    } else if (layer.kind == kDense) {
      session_.RunDense(k, x, rows, to);
    } else if (layer.kind == kActivation) {
      Activate(layer.activation, x, rows, layer.units, to);
    } else {
      RunMasking(layer, x, rows, to, valid_.get());
      valid = valid_.get();
    }
    x = to;
  }
}

void Stream::RunRecurrent(size_t layer, int64_t steps, const float* x,
                          const bool* valid, float* y) {
  const bool all_valid =
      !valid || std::memchr(valid, 0, batch_ * steps * sizeof(bool)) == nullptr;
  if (all_valid) {
    RunValid(layer, steps, steps, x, y);
  } else {
    RunMasked(layer, steps, x, valid, y);
  }
}

// Computes the first `steps` of `time` steps.
void Stream::RunValid(size_t layer, int64_t time, int64_t steps, const float* x,
                      float* y) {
  LayerStates& states = states_[layer];
  if (states.by_row()) {
    states.row.steps = steps;
    states.row.x = x;
    states.row.y = y;
    states.frozen->RunRow(states.row);
    states.row.reverse ^= steps % 2 == 1;
    return;
  }
  int length = 0;
  while (int64_t{1} << length < steps) ++length;
  session_.recurrent(layer)->RunSteps({batch_, time, steps, x, y}, states.now,
                                      states.next, states.plans[length],
                                      &memory_);
  std::swap(states.now, states.next);
}

// Computes steps of which some are masked, one by one. A masked step computes
// with x = 0; its states are those before.
void Stream::RunMasked(size_t layer, int64_t steps, const float* x,
                       const bool* valid, float* y) {
  const Layer& description = session_.layers()[layer];
  const LayerStates& states = states_[layer];
  const int64_t hidden = states.h_size, cell = states.c_size;
  const bool zero_output = description.Has(kZeroOutputForMask);
  for (int64_t t = 0; t < steps; ++t) {
    const bool is_skipped = states.by_row() && !valid[t];
    if (!is_skipped) {
      RunValid(layer, steps, 1, x + t * description.input_size, y + t * hidden);
    }
    for (int64_t b = 0; b < batch_; ++b) {
      if (valid[b * steps + t]) continue;
      float* h = states.now.h + b * hidden;
      if (!is_skipped) {  // `next` has the states before
        std::copy_n(states.next.h + b * hidden, hidden, h);
        std::copy_n(states.next.c + b * cell, cell, states.now.c + b * cell);
      }
      float* output = y + (b * steps + t) * hidden;
      if (zero_output) {
        std::fill_n(output, hidden, 0.0F);
      } else {
        std::copy_n(h, hidden, output);
      }
    }
  }
}

bool Stream::Reset(const int64_t* rows, int64_t count, Error* error) {
  if (count < 0 || (!rows && count != 0)) {
    return Fail(error, kInvalidArgument, "count is %" PRId64 ", must be %s",
                count, rows ? "0 or more" : "0 because rows is null");
  }
  for (int64_t k = 0; k < count; ++k) {
    if (rows[k] >= 0 && rows[k] < batch_) continue;
    return Fail(error, kInvalidArgument,
                "rows[%" PRId64 "] is %" PRId64 ", must be from 0 to %" PRId64,
                k, rows[k], batch_ - 1);
  }
  const Claim claim(this, error);
  if (!claim) return false;
  if (!rows) ClearStates();
  for (const LayerStates& states : states_) {
    for (int64_t k = 0; k < count && states.h_size > 0; ++k) {
      const int64_t h = states.h_size, c = states.c_size;
      std::fill_n(states.now.h + rows[k] * h, h, 0.0F);
      std::fill_n(states.now.c + rows[k] * c, c, 0.0F);
    }
  }
  return true;
}

bool Stream::CheckState(const float* state, int64_t count, Error* error) const {
  const int64_t wanted = batch_ * session_.state_size();
  if (count != wanted) {
    return Fail(error, kInvalidArgument,
                "count is %" PRId64 ", must be %" PRId64, count, wanted);
  }
  if (!state && wanted > 0) {
    return Fail(error, kInvalidArgument, "state is null");
  }
  return true;
}

bool Stream::GetState(float* state, int64_t count, Error* error) {
  if (!CheckState(state, count, error)) return false;
  const Claim claim(this, error);
  if (!claim) return false;
  for (const LayerStates& states : states_) {
    state = std::copy_n(states.now.h, batch_ * states.h_size, state);
    state = std::copy_n(states.now.c, batch_ * states.c_size, state);
  }
  return true;
}

bool Stream::SetState(const float* state, int64_t count, Error* error) {
  if (!CheckState(state, count, error)) return false;
  const Claim claim(this, error);
  if (!claim) return false;
  for (const LayerStates& states : states_) {
    const int64_t h = batch_ * states.h_size, c = batch_ * states.c_size;
    std::copy_n(state, h, states.now.h);
    std::copy_n(state + h, c, states.now.c);
    state += h + c;
  }
  return true;
}

}  // namespace tf_lstm_ops::session
