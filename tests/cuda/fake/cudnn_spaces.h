// The sizes of the weight space, the workspace and the reserve of the fake
// libcudnn.so.9.
#ifndef TF_LSTM_OPS_TESTS_CUDA_FAKE_CUDNN_SPACES_H_
#define TF_LSTM_OPS_TESTS_CUDA_FAKE_CUDNN_SPACES_H_

#include <cstddef>
#include <cstdint>

#include "cudnn_descriptors.h"
#include "rnn.h"

namespace fake {

Batch BatchOf(const cudnnRNNDataStruct& data);

WeightSpace Weights(const cudnnRNNStruct& rnn);

// Sizes are in bytes. `x` describes the input.
size_t WeightBytes(const cudnnRNNStruct& rnn);
size_t WorkspaceBytes(const cudnnRNNStruct& rnn, const cudnnRNNDataStruct& x);
size_t ReserveBytes(const cudnnRNNStruct& rnn, const cudnnRNNDataStruct& x);

// The reserve is a magic number, the last pass, then the tape.
enum class Stage : uint64_t { kForward, kBackwardData };

void SetStage(void* reserve, Stage stage);
bool IsAt(const void* reserve, Stage stage);
double* Tape(void* reserve);

}  // namespace fake

#endif  // TF_LSTM_OPS_TESTS_CUDA_FAKE_CUDNN_SPACES_H_
