// The ops on the parameter buffer: its size, and the conversion from and to
// lists of matrices and vectors.
#ifndef TF_LSTM_OPS_DIALECTS_CUDNN_RNN_CONVERSION_H_
#define TF_LSTM_OPS_DIALECTS_CUDNN_RNN_CONVERSION_H_

#include <cstdint>
#include <vector>

#include "core/params_layout.h"
#include "core/status.h"
#include "dialects/cudnn_rnn/problem.h"
#include "tf/kernel.h"

namespace tf_lstm_ops::cudnn_rnn {

// Sets model and layout from the first three inputs: num_layers, num_units and
// input_size, scalars in host memory. Errors: InvalidArgument.
Status MakeLayout(const Attributes& attributes,
                  const std::vector<tf::Tensor>& inputs, RnnModel* model,
                  ParamsLayout* layout);

// One call of a conversion: the regions of the buffer that hold the weights and
// biases of the canonical lists, by pseudo-layer, then by linear-layer ID.
struct Conversion {
  using Regions = std::vector<ParamsLayout::Region>;

  ParamsLayout layout;
  Regions weights, biases;
};

class ConversionAttributes {
 public:
  // Version 2 has separate numbers of weights and biases, and projections.
  Status Init(const tf::KernelConstruction& construction, bool is_v2);

  // Errors: InvalidArgument, also where the lists have the wrong lengths.
  Status Make(const std::vector<tf::Tensor>& inputs, Conversion* c) const;

 private:
  Attributes attributes_;
  int64_t weights_ = 0, biases_ = 0;
};

// For ToParams. A part may have any shape with the right number of elements, as
// in stock TensorFlow.
Status CheckParts(const char* name, const Conversion::Regions& regions,
                  const std::vector<tf::Tensor>& parts);
// For FromParams.
Status CheckParams(const Conversion& c, const tf::Tensor& params);

// Registers the kernel of CudnnRNNParamsSize under our own name; the second
// function also under the stock name with this priority. The kernel uses host
// memory on every device.
void RegisterOwnParamsSize(const char* device, TF_DataType type);
void RegisterParamsSize(const char* device, TF_DataType type, int priority);

}  // namespace tf_lstm_ops::cudnn_rnn

#endif  // TF_LSTM_OPS_DIALECTS_CUDNN_RNN_CONVERSION_H_
