// What the ops on the parameter buffer ask for, checked: its size, and the ways
// from and to matrices and vectors.
#ifndef TF_LSTM_OPS_DIALECTS_CUDNN_RNN_CONVERSION_H_
#define TF_LSTM_OPS_DIALECTS_CUDNN_RNN_CONVERSION_H_

#include <cstdint>
#include <vector>

#include "core/params_layout.h"
#include "core/status.h"
#include "dialects/cudnn_rnn/problem.h"
#include "tf/kernel.h"

namespace tf_lstm_ops::cudnn_rnn {

// Model and layout from num_layers, num_units and input_size, the first three
// inputs, in the host's memory.
Status MakeLayout(const Attributes& attributes,
                  const std::vector<tf::Tensor>& inputs, RnnModel* model,
                  ParamsLayout* layout);

// One call of a conversion: where the weights and biases of the canonical lists
// stand in the buffer, by pseudo-layer, then by linear-layer ID.
struct Conversion {
  using Regions = std::vector<ParamsLayout::Region>;

  ParamsLayout layout;
  Regions weights, biases;
};

class ConversionAttributes {
 public:
  // Version 2 counts weights and biases apart and knows projections.
  Status Init(const tf::KernelConstruction& construction, bool is_v2);

  // Errors: also where the lists are not as long as the model needs.
  Status Make(const std::vector<tf::Tensor>& inputs, Conversion* c) const;

 private:
  Attributes attributes_;
  int64_t weights_ = 0, biases_ = 0;
};

// Of ToParams: parts of any shape with the right number of elements will do, as
// in stock.
Status CheckParts(const char* name, const Conversion::Regions& regions,
                  const std::vector<tf::Tensor>& parts);
// Of FromParams.
Status CheckParams(const Conversion& c, const tf::Tensor& params);

// Registers the kernel of CudnnRNNParamsSize, which works in the host's memory
// on any device: under our own name, and also under the stock one with this
// priority.
void RegisterOwnParamsSize(const char* device, TF_DataType type);
void RegisterParamsSize(const char* device, TF_DataType type, int priority);

}  // namespace tf_lstm_ops::cudnn_rnn

#endif  // TF_LSTM_OPS_DIALECTS_CUDNN_RNN_CONVERSION_H_
