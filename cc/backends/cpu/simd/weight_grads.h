// WeightGrads: the gradients of all weight matrices of a layer direction,
// dW = x' dz, dR = h_prev' dz and, with a projection, dWp = m' dh.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_SIMD_WEIGHT_GRADS_H_
#define TF_LSTM_OPS_BACKENDS_CPU_SIMD_WEIGHT_GRADS_H_

#include "backends/cpu/engine.h"
#include "backends/cpu/simd/cells.h"
#include "backends/cpu/simd/scratch.h"
#include "backends/cpu/simd/weight_grad.h"

namespace tf_lstm_ops::TF_LSTM_OPS_SIMD {

template <class T>
class WeightGrads {
 public:
  static constexpr int64_t kPanels = 8 * kRows;  // columns of an item: gather

  // The first factors of a chunk of packed rows, as panels.
  struct Factors {
    T *x, *h, *unprojected_h;
  };
  // The second factors of a chunk of `count` packed rows. A row of dz is
  // [pre-activations, H], a row of dh is [P].
  struct Gradients {
    const T* z_grad;
    int64_t z_stride;
    const T* h_grad;
    int64_t h_stride;
    int64_t count;
  };
  // Consecutive packed rows and their numbers in the chunk.
  struct Rows {
    int64_t begin, end, first;
  };

  // A chunk has at most `capacity` packed rows. `format` is that of both
  // factors.
  WeightGrads(const EngineBackward<T>& args, const CellShape& shape,
              int64_t capacity, WeightFormat format)
      : args_(args),
        first_recurrent_(shape.first_recurrent),
        input_size_(args.config.input_size),
        hidden_(args.config.hidden_size),
        cell_(args.config.cell_size),
        input_({input_size_, cell_, shape.input, OrderFrom(0),
                args.input_dropout.data != nullptr},
               args.weights_grad.input, capacity, format),
        recurrent_(
            {hidden_, cell_, shape.recurrent, OrderFrom(shape.first_recurrent),
             args.recurrent_dropout.data != nullptr},
            args.weights_grad.recurrent, capacity, format),
        projection_({cell_, hidden_, 1, kOrderSingle},
                    args.config.projected() ? args.weights_grad.projection
                                            : GateMatrices<T>(),
                    capacity, format) {}

  Factors Place(Scratch<T>* scratch) const {
    Factors factors;
    factors.x = scratch->Take(input_.PanelsSize());
    factors.h = scratch->Take(recurrent_.PanelsSize());
    factors.unprojected_h = scratch->Take(projection_.PanelsSize());
    return factors;
  }

  // Copies columns of x, h_prev and m of some packed rows to panels, after
  // dropout. Items: kPanels columns of each. h_of(e) and m_of(e) are the rows
  // of packed row e.
  int64_t PanelItems() const {
    return PanelItems(input_, input_size_) + PanelItems(recurrent_, hidden_) +
           PanelItems(projection_, cell_);
  }
  template <class HOf, class MOf>
  void Gather(const Rows& rows, int64_t item, const HOf& h_of, const MOf& m_of,
              const Factors& to) const {
    if (item < PanelItems(input_, input_size_)) {
      const auto x_of = [&](int64_t e) {
        return args_.x + args_.packed->input_row[e] * args_.x_stride;
      };
      return Gather(rows, item, input_, input_size_, x_of,
                    args_.input_dropout.data, 0, to.x);
    }
    item -= PanelItems(input_, input_size_);
    if (item < PanelItems(recurrent_, hidden_)) {
      return Gather(rows, item, recurrent_, hidden_, h_of,
                    args_.recurrent_dropout.data, first_recurrent_, to.h);
    }
    item -= PanelItems(recurrent_, hidden_);
    Gather(rows, item, projection_, cell_, m_of, nullptr, 0, to.unprojected_h);
  }

  // Writes the products of a chunk to the gradients, or with `add` adds them.
  int64_t Items() const {
    return input_.Items() + recurrent_.Items() + projection_.Items();
  }
  void Run(const Factors& factors, const Gradients& gradients, bool add,
           int64_t item, T* scratch) const {
    ForEach(factors, gradients, [&](const auto& grad, const auto& of) {
      if (item >= 0 && item < grad.Items()) grad.Run(of, add, item, scratch);
      item -= grad.Items();
    });
  }

  // The same for partial sums, of a part of the batch.
  int64_t SumsSize() const {
    return input_.SumsSize() + recurrent_.SumsSize() + projection_.SumsSize();
  }
  void AddToSums(const Factors& factors, const Gradients& gradients, bool add,
                 T* scratch, T* sums) const {
    ForEach(factors, gradients, [&](const auto& grad, const auto& of) {
      grad.AddToSums(of, add, scratch, sums);
      sums += grad.SumsSize();
    });
  }

  // Writes the gradients: the totals of `count` partial sums, one behind the
  // other. An item is a row of a matrix.
  int64_t TotalItems() const {
    return input_.TotalItems() + recurrent_.TotalItems() +
           projection_.TotalItems();
  }
  void WriteTotals(const T* sums, int64_t count, int64_t item) const {
    for (const WeightGrad<T>* grad : {&input_, &recurrent_, &projection_}) {
      if (item >= 0 && item < grad->TotalItems()) {
        grad->WriteTotal(sums, SumsSize(), count, item);
      }
      item -= grad->TotalItems();
      sums += grad->SumsSize();
    }
  }

 private:
  // The blocks of the pre-activations from `first` on.
  GateOrder OrderFrom(int first) const {
    GateOrder order = {};
    for (int p = first; p < kMaxTerms; ++p) {
      order.block[p - first] = args_.config.gate_order.block[p];
    }
    return order;
  }

  static int64_t PanelItems(const WeightGrad<T>& grad, int64_t width) {
    return grad.Sets() * Blocks(width, kPanels);
  }

  // `keep` has a set of multipliers for each gate. Set s is for gate first + s.
  template <class RowOf>
  void Gather(const Rows& rows, int64_t item, const WeightGrad<T>& grad,
              int64_t width, const RowOf& row_of, const T* keep, int first,
              T* panels) const {
    const int set = static_cast<int>(item / Blocks(width, kPanels));
    const int64_t begin = item % Blocks(width, kPanels) * kPanels;
    const int64_t end = Min(begin + kPanels, width);
    const int block = args_.config.gate_order.block[first + set];
    const PackedSequence& packed = *args_.packed;
    for (int64_t e = rows.begin; e < rows.end; ++e) {
      const T* kept =
          keep ? keep + (block * packed.batch + packed.batch_row[e]) * width
               : nullptr;
      grad.panels().SetRow(grad.Set(panels, set), rows.first + e - rows.begin,
                           row_of(e), kept, begin, end);
    }
  }

  // Calls f with each gradient and its factors.
  template <class F>
  void ForEach(const Factors& factors, const Gradients& of, const F& f) const {
    using Both = WeightGradFactors<T>;
    f(input_, Both{factors.x, of.z_grad, of.z_stride, of.count});
    f(recurrent_, Both{factors.h, of.z_grad + first_recurrent_ * cell_,
                       of.z_stride, of.count});
    f(projection_,
      Both{factors.unprojected_h, of.h_grad, of.h_stride, of.count});
  }

  const EngineBackward<T>& args_;
  const int first_recurrent_;
  const int64_t input_size_, hidden_, cell_;
  const WeightGrad<T> input_, recurrent_, projection_;
};

}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD

#endif  // TF_LSTM_OPS_BACKENDS_CPU_SIMD_WEIGHT_GRADS_H_
