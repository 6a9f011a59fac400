#include "core/params_layout.h"

#include <initializer_list>

#include "core/shape.h"

namespace tf_lstm_ops {
namespace {

// Sums and products that detect overflow of int64.
class Checked {
 public:
  int64_t Product(std::initializer_list<int64_t> factors) {
    int64_t product = 0;
    ok_ = CheckedProduct(factors, &product) && ok_;
    return product;
  }
  int64_t Sum(std::initializer_list<int64_t> terms) {
    int64_t sum = 0;
    for (const int64_t term : terms) {
      ok_ = !__builtin_add_overflow(sum, term, &sum) && ok_;
    }
    return sum;
  }
  bool ok() const { return ok_; }

 private:
  bool ok_ = true;
};

}  // namespace

Status ParamsLayout::Make(const RnnModel& model, ParamsLayout* layout) {
  Checked c;
  layout->model_ = model;
  const int64_t gates = model.gates(), cell = model.cell_size;
  c.Product({model.directions, model.hidden_size});
  const auto matrices = [&](int64_t layer) {
    const int64_t columns =
        c.Sum({layout->InputColumns(layer), model.hidden_size});
    return c.Sum(
        {c.Product({gates, cell, columns}),
         model.projected() ? c.Product({model.hidden_size, cell}) : 0});
  };
  layout->first_ = matrices(0);
  layout->others_ = matrices(1);
  const int64_t pseudo_layers = c.Product({model.layers, model.directions});
  const int64_t size =
      c.Sum({c.Product({model.directions, layout->first_}),
             c.Product({pseudo_layers - model.directions, layout->others_}),
             c.Product({pseudo_layers, 2, gates, cell})});
  layout->size_ = size;
  c.Product({size, sizeof(double)});
  if (c.ok()) return Status();
  return InvalidArgument("params size overflows: num_layers is ", model.layers,
                         ", num_units is ", cell, ", input_size is ",
                         model.input_size);
}

ParamsLayout::Region ParamsLayout::Matrix(int64_t pseudo_layer, int id) const {
  const int64_t directions = model_.directions;
  const int64_t layer = pseudo_layer / directions;
  const int64_t start =
      layer == 0 ? pseudo_layer * first_
                 : directions * first_ + (pseudo_layer - directions) * others_;
  const int gates = model_.gates();
  const int64_t cell = model_.cell_size, hidden = model_.hidden_size;
  const int64_t columns = InputColumns(layer);
  if (id < gates) return {start + id * cell * columns, cell, columns};
  const int64_t recurrent = start + gates * cell * columns;
  if (id < 2 * gates) {
    return {recurrent + (id - gates) * cell * hidden, cell, hidden};
  }
  return {recurrent + gates * cell * hidden, hidden, cell};
}

ParamsLayout::Region ParamsLayout::Bias(int64_t pseudo_layer, int id) const {
  const int64_t directions = model_.directions;
  const int64_t matrices =
      directions * first_ + (model_.pseudo_layers() - directions) * others_;
  return {matrices + (pseudo_layer * biases() + id) * model_.cell_size, 1,
          model_.cell_size};
}

}  // namespace tf_lstm_ops
