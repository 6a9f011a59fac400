#include "rnn.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace fake {
namespace {

double Sigmoid(double z) { return 1 / (1 + std::exp(-z)); }

// A matrix of the weights.
struct Matrix {
  Elements elements;
  Region region;

  double operator()(int64_t row, int64_t column) const {
    return elements.Get(region.offset + row * region.columns + column);
  }
};

// The recurrent part of GRU's third gate has another gradient than its input
// part: it is the fourth row on the tape.
int64_t RecurrentRow(const Model& model, int64_t gate) {
  return model.mode == CUDNN_GRU && gate == 2 ? 3 : gate;
}

}  // namespace

int64_t SizeOf(cudnnDataType_t type) {
  return type == CUDNN_DATA_DOUBLE ? 8 : type == CUDNN_DATA_HALF ? 2 : 4;
}

double Elements::Get(int64_t n) const {
  if (type == CUDNN_DATA_DOUBLE) return static_cast<const double*>(data)[n];
  if (type == CUDNN_DATA_HALF) return static_cast<const _Float16*>(data)[n];
  return static_cast<const float*>(data)[n];
}

void Elements::Set(int64_t n, double value) const {
  if (type == CUDNN_DATA_DOUBLE) {
    static_cast<double*>(data)[n] = value;
  } else if (type == CUDNN_DATA_HALF) {
    static_cast<_Float16*>(data)[n] = static_cast<_Float16>(value);
  } else {
    static_cast<float*>(data)[n] = static_cast<float>(value);
  }
}

WeightSpace::WeightSpace(const Model& model) : ids_(2 * model.gates() + 1) {
  matrices_.resize(model.pseudo_layers() * ids_);
  biases_.resize(model.pseudo_layers() * ids_);
  for (int64_t p = 0; p < model.pseudo_layers(); ++p) {
    const int64_t layer = p / model.directions;
    const int64_t columns =
        layer == 0 && model.skips_input ? 0 : model.InputOf(layer);
    Region* of = &matrices_[p * ids_];
    for (int64_t g = 0; g < model.gates(); ++g) {
      if (columns) Add(&of[g], model.hidden, columns);
    }
    for (int64_t g = 0; g < model.gates(); ++g) {
      Add(&of[model.gates() + g], model.hidden, model.projection);
    }
    if (model.is_projected()) {
      Add(&of[2 * model.gates()], model.projection, model.hidden);
    }
  }
  for (int64_t p = 0; p < model.pseudo_layers(); ++p) {
    for (int64_t id = 0; id < 2 * model.gates(); ++id) {
      Add(&biases_[p * ids_ + id], 1, model.hidden);
    }
  }
}

void WeightSpace::Add(Region* region, int64_t rows, int64_t columns) {
  *region = {size_, rows, columns};
  size_ += rows * columns;
}

const Region& WeightSpace::Matrix(int64_t pseudo_layer, int64_t id) const {
  return matrices_[pseudo_layer * ids_ + id];
}

const Region& WeightSpace::Bias(int64_t pseudo_layer, int64_t id) const {
  return biases_[pseudo_layer * ids_ + id];
}

int64_t Rnn::TapeSize(const Model& model, const Batch& batch) {
  return model.pseudo_layers() * batch.time * batch.batch * kRows *
         model.hidden;
}

double* Rnn::At(int64_t pseudo_layer, int64_t t, int64_t b, Row row) const {
  const int64_t step = (pseudo_layer * batch_.time + t) * batch_.batch + b;
  return tape_ + (step * kRows + row) * model_.hidden;
}

double Rnn::Input(const Elements& x, int64_t layer, int64_t t, int64_t b,
                  int64_t n) const {
  if (layer == 0) return x.Get(batch_.Row(t, b) * model_.input + n);
  const int64_t direction = n / model_.projection;
  return At((layer - 1) * model_.directions + direction, t, b,
            kH)[n % model_.projection];
}

void Rnn::Steps(int64_t direction, int64_t b,
                const std::function<void(int64_t)>& step) const {
  const int64_t length = batch_.lengths[b];
  for (int64_t n = 0; n < length; ++n) step(direction ? length - 1 - n : n);
}

void Rnn::RunForward(const Forward& f) const {
  for (int64_t p = 0; p < model_.pseudo_layers(); ++p) {
    for (int64_t b = 0; b < batch_.batch; ++b) ForwardRow(f, p, b);
  }
}

void Rnn::ForwardRow(const Forward& f, int64_t p, int64_t b) const {
  const int64_t hidden = model_.hidden, projection = model_.projection;
  const int64_t layer = p / model_.directions, d = p % model_.directions;
  const bool is_lstm = model_.mode == CUDNN_LSTM;
  const auto matrix = [&](int64_t id) {
    return Matrix{f.weights, space_.Matrix(p, id)};
  };
  std::vector<double> h(projection), c(hidden);
  for (int64_t k = 0; k < projection; ++k) {
    h[k] = f.hx ? f.hx.Get((p * batch_.batch + b) * projection + k) : 0;
  }
  for (int64_t u = 0; u < hidden && is_lstm; ++u) {
    c[u] = f.cx ? f.cx.Get((p * batch_.batch + b) * hidden + u) : 0;
  }
  Steps(d, b, [&](int64_t t) {
    double *gates = At(p, t, b, kGates), *m = At(p, t, b, kM);
    for (int64_t u = 0; u < hidden; ++u) {
      double zx[4] = {}, zr[4] = {};
      for (int64_t g = 0; g < model_.gates(); ++g) {
        const Matrix w = matrix(g), r = matrix(model_.gates() + g);
        zx[g] = f.weights.Get(space_.Bias(p, g).offset + u);
        zr[g] = f.weights.Get(space_.Bias(p, model_.gates() + g).offset + u);
        if (layer == 0 && model_.skips_input) {
          zx[g] += Input(f.x, layer, t, b, u);
        } else {
          for (int64_t k = 0; k < model_.InputOf(layer); ++k) {
            zx[g] += w(u, k) * Input(f.x, layer, t, b, k);
          }
        }
        for (int64_t k = 0; k < projection; ++k) zr[g] += r(u, k) * h[k];
      }
      const auto gate = [&](int64_t g) -> double& {
        return gates[g * hidden + u];
      };
      if (is_lstm) {
        gate(0) = Sigmoid(zx[0] + zr[0]);
        gate(1) = Sigmoid(zx[1] + zr[1]);
        gate(2) = std::tanh(zx[2] + zr[2]);
        gate(3) = Sigmoid(zx[3] + zr[3]);
        c[u] = gate(1) * c[u] + gate(0) * gate(2);
        m[u] = gate(3) * std::tanh(c[u]);
      } else if (model_.mode == CUDNN_GRU) {
        gate(0) = Sigmoid(zx[0] + zr[0]);
        gate(1) = Sigmoid(zx[1] + zr[1]);
        gate(2) = std::tanh(zx[2] + gate(0) * zr[2]);
        gate(3) = zr[2];
        m[u] = (1 - gate(1)) * gate(2) + gate(1) * h[u];
      } else {
        const double z = zx[0] + zr[0];
        m[u] = model_.mode == CUDNN_RNN_TANH ? std::tanh(z) : z <= 0 ? 0 : z;
      }
    }
    for (int64_t k = 0; k < projection; ++k) {
      if (!model_.is_projected()) {
        h[k] = m[k];
        continue;
      }
      const Matrix w = matrix(2 * model_.gates());
      h[k] = 0;
      for (int64_t u = 0; u < hidden; ++u) h[k] += w(k, u) * m[u];
    }
    std::copy(c.begin(), c.end(), At(p, t, b, kC));
    std::copy(h.begin(), h.end(), At(p, t, b, kH));
    if (layer < model_.layers - 1) return;
    for (int64_t k = 0; k < projection; ++k) {
      f.y.Set(batch_.Row(t, b) * model_.output() + d * projection + k, h[k]);
    }
  });
  for (int64_t k = 0; k < projection && f.hy; ++k) {
    f.hy.Set((p * batch_.batch + b) * projection + k, h[k]);
  }
  for (int64_t u = 0; u < hidden && f.cy && is_lstm; ++u) {
    f.cy.Set((p * batch_.batch + b) * hidden + u, c[u]);
  }
}

void Rnn::RunBackwardData(const Backward& f) const {
  const int64_t width = model_.output();
  std::vector<double> above(batch_.time * batch_.batch * width);
  for (int64_t b = 0; b < batch_.batch; ++b) {
    for (int64_t t = 0; t < batch_.lengths[b]; ++t) {
      const int64_t row = batch_.Row(t, b);
      for (int64_t n = 0; n < width; ++n) {
        above[row * width + n] = f.dy.Get(row * width + n);
      }
    }
  }
  for (int64_t layer = model_.layers - 1; layer >= 0; --layer) {
    std::vector<double> below(batch_.time * batch_.batch *
                              model_.InputOf(layer));
    for (int64_t d = 0; d < model_.directions; ++d) {
      const int64_t p = layer * model_.directions + d;
      // What comes from above moves to the tape, for the gradients of weights.
      for (int64_t b = 0; b < batch_.batch; ++b) {
        for (int64_t t = 0; t < batch_.lengths[b]; ++t) {
          const double* from =
              above.data() + batch_.Row(t, b) * width + d * model_.projection;
          std::copy(from, from + model_.projection, At(p, t, b, kDh));
        }
        BackwardRow(f, p, b, &below);
      }
    }
    above = below;
  }
  for (int64_t b = 0; b < batch_.batch; ++b) {
    for (int64_t t = 0; t < batch_.lengths[b]; ++t) {
      for (int64_t n = 0; n < model_.input; ++n) {
        const int64_t at = batch_.Row(t, b) * model_.input + n;
        f.dx.Set(at, above[at]);
      }
    }
  }
}

void Rnn::BackwardRow(const Backward& f, int64_t p, int64_t b,
                      std::vector<double>* below) const {
  const int64_t hidden = model_.hidden, projection = model_.projection;
  const int64_t layer = p / model_.directions;
  const bool is_lstm = model_.mode == CUDNN_LSTM;
  const auto matrix = [&](int64_t id) {
    return Matrix{f.weights, space_.Matrix(p, id)};
  };
  const int64_t state = p * batch_.batch + b;
  std::vector<double> dh(projection), dc(hidden);
  for (int64_t k = 0; k < projection; ++k) {
    dh[k] = f.dhy ? f.dhy.Get(state * projection + k) : 0;
  }
  for (int64_t u = 0; u < hidden && is_lstm; ++u) {
    dc[u] = f.dcy ? f.dcy.Get(state * hidden + u) : 0;
  }
  std::vector<int64_t> order;
  Steps(p % model_.directions, b, [&](int64_t t) { order.push_back(t); });
  for (int64_t n = static_cast<int64_t>(order.size()) - 1; n >= 0; --n) {
    const int64_t t = order[n];
    const auto before = [&](Row row, const Elements& first, int64_t width,
                            int64_t u) {
      if (n > 0) return At(p, order[n - 1], b, row)[u];
      return first ? first.Get(state * width + u) : 0;
    };
    double *gates = At(p, t, b, kGates), *total = At(p, t, b, kDh);
    for (int64_t k = 0; k < projection; ++k) total[k] += dh[k];
    std::fill(dh.begin(), dh.end(), 0);
    for (int64_t u = 0; u < hidden; ++u) {
      double dm = model_.is_projected() ? 0 : total[u];
      for (int64_t k = 0; k < projection && model_.is_projected(); ++k) {
        dm += matrix(2 * model_.gates())(k, u) * total[k];
      }
      const auto gate = [&](int64_t g) -> double& {
        return gates[g * hidden + u];
      };
      const double m = At(p, t, b, kM)[u];
      if (is_lstm) {
        const double i = gate(0), forget = gate(1), z = gate(2), o = gate(3);
        const double co = std::tanh(At(p, t, b, kC)[u]);
        const double dcs = dc[u] + dm * o * (1 - co * co);
        gate(0) = dcs * z * i * (1 - i);
        gate(1) = dcs * before(kC, f.cx, hidden, u) * forget * (1 - forget);
        gate(2) = dcs * i * (1 - z * z);
        gate(3) = dm * co * o * (1 - o);
        dc[u] = dcs * forget;
      } else if (model_.mode == CUDNN_GRU) {
        const double r = gate(0), z = gate(1), candidate = gate(2);
        const double dn = dm * (1 - z) * (1 - candidate * candidate);
        gate(0) = dn * gate(3) * r * (1 - r);
        gate(1) = dm * (before(kH, f.hx, hidden, u) - candidate) * z * (1 - z);
        gate(2) = dn;
        gate(3) = dn * r;
        dh[u] += dm * z;
      } else {
        gate(0) = model_.mode == CUDNN_RNN_TANH ? dm * (1 - m * m)
                  : m > 0                       ? dm
                                                : 0;
      }
    }
    for (int64_t g = 0; g < model_.gates(); ++g) {
      const double* recurrent = gates + RecurrentRow(model_, g) * hidden;
      const Matrix w = matrix(g), r = matrix(model_.gates() + g);
      double* to = below->data() + batch_.Row(t, b) * model_.InputOf(layer);
      for (int64_t u = 0; u < hidden; ++u) {
        const double dz = gates[g * hidden + u];
        if (layer == 0 && model_.skips_input) {
          to[u] += dz;
        } else {
          for (int64_t k = 0; k < model_.InputOf(layer); ++k) {
            to[k] += w(u, k) * dz;
          }
        }
        for (int64_t k = 0; k < projection; ++k) {
          dh[k] += r(u, k) * recurrent[u];
        }
      }
    }
  }
  for (int64_t k = 0; k < projection && f.dhx; ++k) {
    f.dhx.Set(state * projection + k, dh[k]);
  }
  for (int64_t u = 0; u < hidden && f.dcx && is_lstm; ++u) {
    f.dcx.Set(state * hidden + u, dc[u]);
  }
}

void Rnn::RunBackwardWeights(const Backward& f) const {
  std::vector<double> sums(space_.size());
  const int64_t hidden = model_.hidden, gates = model_.gates();
  for (int64_t p = 0; p < model_.pseudo_layers(); ++p) {
    const int64_t layer = p / model_.directions;
    const bool skips = layer == 0 && model_.skips_input;
    for (int64_t b = 0; b < batch_.batch; ++b) {
      int64_t last = -1;
      Steps(p % model_.directions, b, [&](int64_t t) {
        const double *dz = At(p, t, b, kGates), *m = At(p, t, b, kM);
        const auto h_prev = [&](int64_t k) {
          if (last >= 0) return At(p, last, b, kH)[k];
          const int64_t at = (p * batch_.batch + b) * model_.projection + k;
          return f.hx ? f.hx.Get(at) : 0;
        };
        for (int64_t g = 0; g < gates; ++g) {
          const double* dr = dz + RecurrentRow(model_, g) * hidden;
          double* w = sums.data() + space_.Matrix(p, g).offset;
          double* r = sums.data() + space_.Matrix(p, gates + g).offset;
          for (int64_t u = 0; u < hidden; ++u) {
            sums[space_.Bias(p, g).offset + u] += dz[g * hidden + u];
            sums[space_.Bias(p, gates + g).offset + u] += dr[u];
            for (int64_t k = 0; k < model_.InputOf(layer) && !skips; ++k) {
              w[u * model_.InputOf(layer) + k] +=
                  dz[g * hidden + u] * Input(f.x, layer, t, b, k);
            }
            for (int64_t k = 0; k < model_.projection; ++k) {
              r[u * model_.projection + k] += dr[u] * h_prev(k);
            }
          }
        }
        for (int64_t k = 0; k < model_.projection && model_.is_projected();
             ++k) {
          double* w = sums.data() + space_.Matrix(p, 2 * gates).offset;
          for (int64_t u = 0; u < hidden; ++u) {
            w[k * hidden + u] += At(p, t, b, kDh)[k] * m[u];
          }
        }
        last = t;
      });
    }
  }
  for (int64_t n = 0; n < space_.size(); ++n) {
    f.weight_gradients.Set(n, f.weight_gradients.Get(n) + sums[n]);
  }
}

}  // namespace fake
