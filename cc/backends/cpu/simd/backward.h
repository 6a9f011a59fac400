// BackwardPass: the backward pass of a layer direction as one job, all but the
// cell's equations, which cell_backward.h adds. Compiled once for all cells.
//
// Notation: dv is the gradient with respect to v; m is the hidden state before
// the projection. Only the product of dz with the transposed recurrent weights
// is sequential. The gradients of the weights and of the input are products
// over all steps, computed after the last step.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_SIMD_BACKWARD_H_
#define TF_LSTM_OPS_BACKENDS_CPU_SIMD_BACKWARD_H_

#include <cstring>

#include "backends/cpu/engine.h"
#include "backends/cpu/simd/cells.h"
#include "backends/cpu/simd/gemm.h"
#include "backends/cpu/simd/scratch.h"

namespace tf_lstm_ops::TF_LSTM_OPS_SIMD {

template <class T>
class BackwardPass {
 public:
  using Element = T;

  BackwardPass(const EngineBackward<T>& args, const CellShape& shape,
               int threads)
      : args_(args),
        shape_(shape),
        weights_grad_(args.weights_grad),
        input_(args.config.input_size),
        cell_(args.config.cell_size),
        hidden_(args.config.hidden_size),
        padded_(RoundUpToLanes<T>(cell_)),
        padded_hidden_(RoundUpToLanes<T>(hidden_)),
        batch_(args.packed->batch),
        packed_rows_(args.packed->size()),
        steps_(args.packed->steps),
        pairs_(kCanRound && args.config.bfloat16),
        group_(Group(threads)),
        begin_(args.packed->begin.data()),
        batch_row_(args.packed->batch_row.data()),
        input_row_(args.packed->input_row.data()),
        output_row_(args.packed->output_row.data()),
        previous_(args.packed->previous.data()) {}

  // Assigns the pieces of scratch memory for `threads` threads.
  void Place(Scratch<T>* scratch, int threads) {
    const int64_t unprojected_size =
        StoresUnprojectedH() ? packed_rows_ * cell_ : 0;
    packed_recurrent_ = scratch->Take(
        NeedsHGrad() ? shape_.recurrent * padded_hidden_ * CellWords() : 0);
    packed_input_ = scratch->Take(
        args_.weights.input
            ? shape_.input * RoundUpToLanes<T>(input_) * CellWords()
            : 0);
    packed_projection_ = scratch->Take(Projected() ? padded_ * hidden_ : 0);
    z_grad_ =
        args_.z_grad
            ? args_.z_grad
            : scratch->Take(packed_rows_ * shape_.pre_activations * cell_);
    rounded_z_grad_ =
        pairs_
            ? scratch->Take(packed_rows_ * shape_.pre_activations * CellWords())
            : nullptr;
    state_grad_ = shape_.has_cell_state ? args_.c0_grad.data
                  : shape_.has_state    ? scratch->Take(batch_ * cell_)
                                        : nullptr;
    h_grad_rows_ = scratch->Take(Projected() ? packed_rows_ * hidden_ : 0);
    unprojected_h_grad_ = scratch->Take(Projected() ? batch_ * cell_ : 0);
    unprojected_h_ = scratch->Take(unprojected_size);
    x_panels_ = scratch->Take(XSets() * PanelSize(input_));
    h_panels_ = scratch->Take(HSets() * PanelSize(hidden_));
    unprojected_h_panels_ =
        scratch->Take(UnprojectedHSets() * PanelSize(cell_));
    blocks_ = scratch->Take(threads * kThreadSize);
  }

  // Phase 0 packs the weights. The next phases run the steps backwards. Then x,
  // h and m are gathered, and the products over all steps are computed. A pass
  // that adds to the x_grad of another pass does so one phase later, after that
  // pass has written it.
  int64_t Phases() const {
    return StepPhases() + (args_.adds_to_x_grad ? 4 : 3);
  }

  int64_t Items(int64_t phase) const {
    if (phase == 0) return PrepareItems();
    if (phase <= StepPhases()) {
      return Blocks(TouchesH(phase - 1) ? padded_hidden_ : padded_, group_);
    }
    if (phase == StepPhases() + 1) {
      return XSets() * Blocks(input_, kPanels) +
             HSets() * Blocks(hidden_, kPanels) +
             UnprojectedHSets() * Blocks(cell_, kPanels);
    }
    const int64_t of_x_grad =
        args_.x_grad ? Blocks(packed_rows_, kRowChunk) * Blocks(input_, kBlock)
                     : 0;
    if (phase == StepPhases() + 3) return of_x_grad;
    return Items(InputProduct()) + Items(RecurrentProduct()) +
           Items(ProjectionProduct()) + (args_.adds_to_x_grad ? 0 : of_x_grad);
  }

  void Run(int64_t phase, int64_t item, int thread) {
    if (phase == 0) return Prepare(item);
    if (phase <= StepPhases()) return RunStep(phase - 1, item * group_);
    if (phase == StepPhases() + 1) return RunGather(item);
    if (phase == StepPhases() + 3) return InputGrad(item);
    RunProduct(item, blocks_ + thread * kThreadSize);
  }

 protected:
  using V = VecT<T>;
  static constexpr int kL = kLanes<T>;
  static constexpr int64_t kCellRows = 8;
  static constexpr bool kCanRound = kDotsPairs && std::is_same_v<T, float>;

  ~BackwardPass() = default;

  // The cell's equations backward for kCellRows packed rows of a step from
  // `begin` on, one vector of units: from the gradients of h and of the state
  // to dz and the gradient of the previous state.
  virtual void Cells(int64_t step, int64_t begin, int64_t u) = 0;

  bool Projected() const { return args_.config.projected(); }

  // Without a projection h = o * co, computed again where h is not given.
  bool RestoresH() const { return !args_.h && weights_grad_.recurrent; }
  bool StoresUnprojectedH() const { return Projected() || RestoresH(); }

  int Block(int part) const { return args_.config.gate_order.block[part]; }

  int64_t CellWords() const { return Words(cell_, pairs_); }

  V UpstreamH(int64_t e, int64_t u) const {
    if (!args_.h_grad) return V{};
    return LoadN(args_.h_grad + output_row_[e] * args_.h_grad_stride + u,
                 hidden_ - u);
  }

  T* ZGrad(int64_t e, int part) const {
    return z_grad_ + (e * shape_.pre_activations + part) * cell_;
  }
  T* RoundedZGrad(int64_t e, int part) const {
    return rounded_z_grad_ + (e * shape_.pre_activations + part) * CellWords();
  }
  static BFloat16Pair* Pairs(T* words) {
    return reinterpret_cast<BFloat16Pair*>(words);
  }

  const T* H(int64_t e) const {
    return RestoresH() ? unprojected_h_ + e * cell_
                       : args_.h + output_row_[e] * args_.h_stride;
  }

  const T* PreviousH(int64_t e) const {
    return previous_[e] < 0 ? args_.h0.data + batch_row_[e] * hidden_
                            : H(previous_[e]);
  }

  static void AddTo(V value, T* to, int64_t width) {
    StoreN(LoadN(to, width) + value, to, width);
  }

  const EngineBackward<T>& args_;
  const CellShape shape_;
  const RnnWeights<T>& weights_grad_;
  const int64_t input_, cell_, hidden_, padded_, padded_hidden_;
  const int64_t batch_, packed_rows_, steps_;
  const bool pairs_;     // factors of products are pairs of bfloat16
  const int64_t group_;  // units in an item of a step
  const int64_t* begin_;
  const int64_t* batch_row_;
  const int64_t* input_row_;
  const int64_t* output_row_;
  const int64_t* previous_;
  T* z_grad_ = nullptr;              // [V, parts, H]
  T* rounded_z_grad_ = nullptr;      // [V, parts, H / 2], of pairs
  T* state_grad_ = nullptr;          // [B, H]
  T* unprojected_h_grad_ = nullptr;  // [B, H], of one step
  T* unprojected_h_ = nullptr;       // [V, H]: o * co, where it is needed

 private:
  static constexpr int64_t kBlock = kColumns * kL;  // columns of a product
  static constexpr int64_t kRowChunk = 64 * kRows;  // and rows, of one item
  static constexpr int64_t kThreadSize = (kDepth + kRowChunk) * kBlock;
  static constexpr int64_t kPanels = 8 * kRows;  // rows of an item that gathers

  // Whether the gradient of any step's previous h is needed.
  bool NeedsHGrad() const { return steps_ > 1 || args_.wants_h0_grad; }
  // Units of an item of a step: a block of columns of a product, or without a
  // product a thread's share.
  int64_t Group(int threads) const {
    const int64_t vectors = padded_ / kL;
    const bool multiplies = NeedsHGrad() || Projected();
    return kL * Max(1, multiplies ? Min(vectors / (2 * threads), kColumns)
                                  : Blocks(vectors, threads));
  }
  // With dropout each gate has its own x and h.
  int64_t XSets() const {
    if (!weights_grad_.input) return 0;
    return args_.input_dropout.data ? shape_.input : 1;
  }
  int64_t HSets() const {
    if (!weights_grad_.recurrent) return 0;
    return args_.recurrent_dropout.data ? shape_.recurrent : 1;
  }
  int64_t UnprojectedHSets() const {
    return Projected() && weights_grad_.projection ? 1 : 0;
  }

  // Without a projection, phase p computes dh from the dz of step S - p, then
  // the cells of step S - 1 - p, for the same units. With a projection these
  // are two phases, since the units of h and of the cell differ.
  int64_t StepPhases() const {
    return Projected() ? 2 * steps_ + 1 : steps_ + 1;
  }
  bool TouchesH(int64_t phase) const { return !Projected() || phase % 2 == 0; }

  void RunStep(int64_t phase, int64_t begin) {
    const int64_t step = steps_ - (Projected() ? phase / 2 : phase);
    if (TouchesH(phase)) {
      const int64_t end = Min(begin + group_, hidden_);
      if (step < steps_ && (step > 0 || args_.wants_h0_grad)) {
        const Projection to_h = {packed_recurrent_,
                                 shape_.first_recurrent,
                                 shape_.recurrent,
                                 hidden_,
                                 args_.recurrent_dropout.data,
                                 batch_row_,
                                 args_.h0_grad.data,
                                 hidden_,
                                 false};
        Project(to_h, begin_[step], begin_[step + 1], begin, end);
      }
      if (step == 0) AddState(begin, end);
      if (Projected() && step > 0) {
        LoadUpstreamH(begin_[step - 1], begin_[step], begin, end);
      }
    }
    if (step == 0 || (Projected() && TouchesH(phase))) return;
    const int64_t end = Min(begin + group_, cell_);
    if (Projected()) ProjectBack(begin_[step - 1], begin_[step], begin, end);
    // A few rows at a time, so that each row's cache lines are used at once.
    for (int64_t e = begin_[step - 1]; e < begin_[step]; e += kCellRows) {
      for (int64_t u = begin; u < end; u += kL) Cells(step - 1, e, u);
    }
  }

  // Items: groups of units; blocks of columns of x.
  int64_t PrepareItems() const {
    return Blocks(cell_, group_) +
           (args_.x_grad && args_.weights.input ? Blocks(input_, kBlock) : 0);
  }

  void Prepare(int64_t item) {
    const int64_t groups = Blocks(cell_, group_);
    if (item >= groups) {
      const int64_t n = (item - groups) * kBlock;
      return PackTransposed(args_.weights.input, 0, shape_.input, n,
                            Min(n + kBlock, input_),
                            packed_input_ + n * shape_.input * CellWords());
    }
    const int64_t n = item * group_;
    Clear(n, Min(n + group_, cell_));
    if (NeedsHGrad()) {
      PackTransposed(args_.weights.recurrent, shape_.first_recurrent,
                     shape_.recurrent, n, Min(n + group_, hidden_),
                     packed_recurrent_ + n * shape_.recurrent * CellWords());
    }
    if (!Projected()) return;
    const GateMatrices<const T>& w = args_.weights.projection;
    w.Read(0, [&](const auto* data) {
      PackBlock(data, w.column_stride, w.row_stride, hidden_, n,
                Min(n + group_, cell_), packed_projection_ + n * hidden_,
                false);
    });
  }

  // Columns [begin, end) of the transposed weights of `parts` gates: [gates, H,
  // vectors of columns, lanes]; as pairs, half as many rows.
  void PackTransposed(const GateMatrices<const T>& weights, int first,
                      int parts, int64_t begin, int64_t end, T* packed) {
    const int64_t size = CellWords() * RoundUpToLanes<T>(Max(end - begin, 0));
    for (int p = 0; p < parts; ++p) {
      weights.Read(Block(first + p), [&](const auto* data) {
        PackBlock(data, weights.column_stride, weights.row_stride, cell_, begin,
                  end, packed + p * size, pairs_);
      });
    }
  }

  // Zeros the sums over all steps, for units [begin, end).
  void Clear(int64_t begin, int64_t end) {
    const auto clear = [&](T* sums) {
      for (int64_t u = begin; sums && u < end; ++u) sums[u] = 0;
    };
    for (T* sum : weights_grad_.peephole) clear(sum);
    for (int p = 0; p < shape_.pre_activations; ++p) {
      const int64_t at = Block(p) * cell_;
      if (weights_grad_.input_bias && p < shape_.input)
        clear(weights_grad_.input_bias + at);
      if (weights_grad_.recurrent_bias && p >= shape_.first_recurrent) {
        clear(weights_grad_.recurrent_bias + at);
      }
    }
    if (!shape_.has_state || shape_.has_cell_state) return;
    for (int64_t b = 0; b < batch_; ++b) clear(state_grad_ + b * cell_);
  }

  // Where the state is h, adds its gradient to that of the initial h.
  void AddState(int64_t begin, int64_t end) {
    if (!shape_.has_state || shape_.has_cell_state) return;
    for (int64_t b = 0; b < batch_; ++b) {
      for (int64_t u = begin; u < end; u += kL) {
        AddTo(LoadN(state_grad_ + b * cell_ + u, cell_ - u),
              args_.h0_grad.data + b * cell_ + u, cell_ - u);
      }
    }
  }

  // With a projection: the gradients of h of packed rows [begin, end).
  void LoadUpstreamH(int64_t begin, int64_t end, int64_t n, int64_t n_end) {
    for (int64_t e = begin; e < end; ++e) {
      for (int64_t u = n; u < n_end; u += kL) {
        const T* dh = args_.h0_grad.data + batch_row_[e] * hidden_ + u;
        StoreN(LoadN(dh, hidden_ - u) + UpstreamH(e, u),
               h_grad_rows_ + e * hidden_ + u, hidden_ - u);
      }
    }
  }

  // With a projection: the gradients of m, dm = Wp' dh.
  void ProjectBack(int64_t begin, int64_t end, int64_t n, int64_t n_end) {
    WithConstant<kColumns>(Blocks(n_end - n, kL), [&](auto columns) {
      MultiplyBlock<decltype(columns)::value>(
          [&](int64_t e) { return h_grad_rows_ + e * hidden_; },
          packed_projection_ + n * hidden_, hidden_, begin, end, n_end - n,
          false, false,
          [&](int64_t e) {
            return unprojected_h_grad_ + (e - begin) * cell_ + n;
          });
    });
  }

  // The product of dz with transposed weights: the gradient of x, or of the
  // previous h.
  struct Projection {
    const T* packed;  // [blocks of columns, gates, H, vectors, lanes], or pairs
    int first, parts;
    int64_t width;          // I or P
    const T* keep;          // [gates, B, width] multipliers, or null
    const int64_t* target;  // of each packed row: its row of `to`
    T* to;                  // [., width], `stride` apart
    int64_t stride;
    bool adds;
  };

  // to[target] = sum over the gates of keep * (dz W'), for packed rows [begin,
  // end) and a block of columns [n, n_end). The sum accumulates in place, a few
  // rows of the weights at a time, so that these stay in the cache for all
  // packed rows.
  void Project(const Projection& p, int64_t begin, int64_t end, int64_t n,
               int64_t n_end) const {
    WithConstant<kColumns>(Blocks(n_end - n, kL), [&](auto columns) {
      constexpr int C = decltype(columns)::value;
      const T* packed = p.packed + n * p.parts * CellWords();
      for (int g = 0; g < p.parts; ++g) {
        for (int64_t k = 0; k < cell_; k += kDepth) {
          const int64_t depth = Min(kDepth, cell_ - k);
          const Terms terms = {packed, p.first + g, k, depth,
                               p.adds || g > 0 || k > 0};
          for (int64_t e = begin; e < end; e += kRows) {
            ProjectRows<C>(p, terms, (e - begin) / kRows, e,
                           Min(end - e, kRows), n);
          }
          packed += Words(depth, pairs_) * C * kL;
        }
      }
    });
  }

  // Units [k, k + depth) of a gate and their weights.
  struct Terms {
    const T* packed;
    int part;
    int64_t k, depth;
    bool adds;
  };

  // Packed rows [e, e + rows), block `block` of rows.
  template <int C>
  void ProjectRows(const Projection& p, const Terms& terms, int64_t block,
                   int64_t e, int64_t rows, int64_t n) const {
    V sum[kRows][C] = {};
    const T* a[kRows] = {};
    T* to[kRows] = {};
    for (int64_t r = 0; r < rows; ++r) {
      a[r] = pairs_ ? RoundedZGrad(e + r, terms.part) + terms.k / 2
                    : ZGrad(e + r, terms.part) + terms.k;
      to[r] = p.to + p.target[e + r] * p.stride + n;
      PrefetchRow<C>(to[r]);
    }
    MultiplyRows<C>(rows, a, 0, terms.packed, terms.depth, {block}, pairs_,
                    sum);
    for (int64_t r = 0; r < rows; ++r) {
      const T* keep = Keep(p.keep, terms.part, p.width);
      if (keep) keep += batch_row_[e + r] * p.width + n;
      for (int c = 0; c < C; ++c) {
        const int64_t width = p.width - n - c * kL;
        if (keep) sum[r][c] = sum[r][c] * LoadN(keep + c * kL, width);
        const V old = terms.adds ? LoadN(to[r] + c * kL, width) : V{};
        StoreN(old + sum[r][c], to[r] + c * kL, width);
      }
    }
  }

  // dx without input weights: dz of the gate that reads a column, or the sum
  // over the gates where all gates share the columns.
  void PassToInput(int64_t begin, int64_t end, int64_t n, int64_t n_end) const {
    const int64_t gate_stride = args_.config.x_gate_stride;
    for (int64_t e = begin; e < end; ++e) {
      for (int64_t u = n; u < n_end; u += kL) {
        T* x = args_.x_grad + input_row_[e] * args_.x_stride + u;
        for (int p = 0; p < shape_.input; ++p) {
          T* to = x + Block(p) * gate_stride;
          const bool adds = args_.adds_to_x_grad || (p > 0 && gate_stride == 0);
          const V old = adds ? LoadN(to, input_ - u) : V{};
          StoreN(old + LoadN(ZGrad(e, p) + u, input_ - u), to, input_ - u);
        }
      }
    }
  }

  // After the steps: x, h and m as panels of kRows columns, [panels, V, kRows].
  // The columns of a panel are the rows of a product's first factor. A pair
  // holds two neighbouring packed rows.
  int64_t PanelSize(int64_t width) const {
    return Blocks(width, kRows) * kRows * Words(packed_rows_, pairs_);
  }

  void RunGather(int64_t item) {
    const auto gathers = [&](int64_t sets, int64_t width, auto gather) {
      const int64_t blocks = Blocks(width, kPanels);
      if (item < 0) return;
      if (item < sets * blocks) gather(item / blocks, item % blocks * kPanels);
      item -= sets * blocks;
    };
    gathers(XSets(), input_, [&](int64_t set, int64_t k) {
      Gather(
          [&](int64_t e) { return args_.x + input_row_[e] * args_.x_stride; },
          Keep(args_.input_dropout.data, static_cast<int>(set), input_), input_,
          k, x_panels_ + set * PanelSize(input_));
    });
    gathers(HSets(), hidden_, [&](int64_t set, int64_t k) {
      const int part = shape_.first_recurrent + static_cast<int>(set);
      Gather([&](int64_t e) { return PreviousH(e); },
             Keep(args_.recurrent_dropout.data, part, hidden_), hidden_, k,
             h_panels_ + set * PanelSize(hidden_));
    });
    gathers(UnprojectedHSets(), cell_, [&](int64_t, int64_t k) {
      Gather([&](int64_t e) { return unprojected_h_ + e * cell_; }, nullptr,
             cell_, k, unprojected_h_panels_);
    });
  }

  // Elements [begin, begin + kPanels) of all packed rows, after dropout.
  template <class RowOf>
  void Gather(const RowOf& row_of, const T* keep, int64_t width, int64_t begin,
              T* panels) const {
    const int64_t end = Min(begin + kPanels, width);
    for (int64_t e = 0; e < packed_rows_; ++e) {
      const T* row = row_of(e);
      const T* kept = keep ? keep + batch_row_[e] * width : nullptr;
      for (int64_t k = begin; k < end; k += kRows) {
        T* panel = panels + k * Words(packed_rows_, pairs_);
        if (!kept && !pairs_ && k + kRows <= end) {
          std::memcpy(panel + e * kRows, row + k, kRows * sizeof(T));
          continue;
        }
        for (int64_t r = 0; r < kRows && k + r < end; ++r) {
          const T seen = kept ? row[k + r] * kept[k + r] : row[k + r];
          SetPanel(panel, e, r, seen);
        }
      }
    }
  }

  void SetPanel(T* panel, int64_t e, int64_t r, T value) const {
    if constexpr (kCanRound) {
      if (pairs_) {
        uint32_t* pair = &Pairs(panel)[e / 2 * kRows + r].bits;
        const uint32_t bits = ToBFloat16(value);
        *pair = e % 2 == 0 ? bits : *pair | bits << 16;
        return;
      }
    }
    panel[e * kRows + r] = value;
  }

  // A weight gradient: for each gate the product of the transposed `panels`
  // with the gate's columns of `rows`, over all packed rows.
  struct Product {
    const T* panels;  // [sets, depth / kRows, V, kRows]: x, h or m
    bool own_panels;  // each gate has its own set
    int64_t depth;    // rows of the gradient: I, P or H
    const T* rows;    // [V, row_stride]: dz, or dh
    int64_t row_stride;
    int first, parts;
    int64_t width;  // columns of the gradient: H, or P
    GateMatrices<T> to;
  };

  Product InputProduct() const {
    return {x_panels_,
            XSets() > 1,
            input_,
            z_grad_,
            shape_.pre_activations * cell_,
            0,
            shape_.input,
            cell_,
            weights_grad_.input};
  }
  Product RecurrentProduct() const {
    return {h_panels_,
            HSets() > 1,
            hidden_,
            z_grad_,
            shape_.pre_activations * cell_,
            shape_.first_recurrent,
            shape_.recurrent,
            cell_,
            weights_grad_.recurrent};
  }
  Product ProjectionProduct() const {
    return {unprojected_h_panels_,
            false,
            cell_,
            h_grad_rows_,
            hidden_,
            0,
            1,
            hidden_,
            Projected() ? weights_grad_.projection : GateMatrices<T>()};
  }

  // Gates, blocks of columns, chunks of rows.
  static int64_t Items(const Product& p) {
    return p.to ? p.parts * Blocks(p.width, kBlock) * Blocks(p.depth, kRowChunk)
                : 0;
  }

  // dW = x' dz, dR = h_prev' dz, dWp = m' dh, dx = dz W'.
  void RunProduct(int64_t item, T* scratch) {
    for (const Product& p :
         {InputProduct(), RecurrentProduct(), ProjectionProduct()}) {
      const int64_t items = Items(p);
      if (item < items) return WeightGrad(p, item, scratch);
      item -= items;
    }
    InputGrad(item);
  }

  void InputGrad(int64_t item) const {
    const int64_t e = item / Blocks(input_, kBlock) * kRowChunk;
    const int64_t n = item % Blocks(input_, kBlock) * kBlock;
    const int64_t e_end = Min(e + kRowChunk, packed_rows_);
    const int64_t n_end = Min(n + kBlock, input_);
    if (!args_.weights.input) return PassToInput(e, e_end, n, n_end);
    const Projection to_x = {packed_input_,
                             0,
                             shape_.input,
                             input_,
                             args_.input_dropout.data,
                             input_row_,
                             args_.x_grad,
                             args_.x_stride,
                             args_.adds_to_x_grad};
    Project(to_x, e, e_end, n, n_end);
  }

  void WeightGrad(const Product& p, int64_t item, T* scratch) const {
    const int64_t row_chunks = Blocks(p.depth, kRowChunk);
    const int64_t m = item % row_chunks * kRowChunk;
    const int64_t n = item / row_chunks % Blocks(p.width, kBlock) * kBlock;
    const int part =
        static_cast<int>(item / row_chunks / Blocks(p.width, kBlock));
    const int64_t m_count = Min(kRowChunk, p.depth - m);
    const int64_t width = Min(kBlock, p.width - n);
    const T* panels = p.panels + (p.own_panels ? part * PanelSize(p.depth) : 0);
    const T* b =
        p.rows + (p.first + part) * (p.rows == z_grad_ ? cell_ : 0) + n;
    T* to = p.to.Block(p.rows == z_grad_ ? Block(p.first + part) : 0) +
            m * p.to.row_stride + n * p.to.column_stride;
    const bool direct = p.to.column_stride == 1;
    T* tile = scratch + kDepth * kBlock;
    T* c = direct ? to : tile;
    const int64_t c_stride = direct ? p.to.row_stride : kBlock;
    int64_t k = 0;
    do {  // once even without packed rows, to write zeros
      const int64_t depth = Min(kDepth, packed_rows_ - k);
      PackBlock(b + k * p.row_stride, p.row_stride, 1, depth, 0, width, scratch,
                pairs_);
      WithConstant<kColumns>(Blocks(width, kL), [&](auto vectors) {
        MultiplyBlock<decltype(vectors)::value, kRows>(
            [&](int64_t row) {
              const int64_t r = row % kRows;
              return panels + (m + row - r) * Words(packed_rows_, pairs_) +
                     Words(k, pairs_) * kRows + r;
            },
            scratch, depth, 0, m_count, width, k > 0, pairs_,
            [&](int64_t row) { return c + row * c_stride; });
      });
      k += depth;
    } while (k < packed_rows_);
    if (direct) return;
    for (int64_t col = 0; col < width; ++col) {
      for (int64_t row = 0; row < m_count; ++row) {
        to[row * p.to.row_stride + col * p.to.column_stride] =
            tile[row * kBlock + col];
      }
    }
  }

  // A gate's set of dropout multipliers.
  const T* Keep(const T* sets, int part, int64_t width) const {
    return sets ? sets + Block(part) * batch_ * width : nullptr;
  }

  T* packed_recurrent_ = nullptr;   // [groups, rec. parts, H, vectors, lanes]
  T* packed_input_ = nullptr;       // [blocks, input parts, H, vectors, lanes]
  T* packed_projection_ = nullptr;  // [groups, P, vectors, lanes]
  T* h_grad_rows_ = nullptr;        // [V, P], with a projection
  T* x_panels_ = nullptr;           // [sets, I / kRows, V, kRows]
  T* h_panels_ = nullptr;           // [sets, P / kRows, V, kRows]
  T* unprojected_h_panels_ = nullptr;  // [H / kRows, V, kRows]
  T* blocks_ = nullptr;                // [threads, kThreadSize]
};

}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD

#endif  // TF_LSTM_OPS_BACKENDS_CPU_SIMD_BACKWARD_H_
