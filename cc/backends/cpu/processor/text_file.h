// ReadText, ReadWord: a small file of the system. Streams of the C++ library
// would be the largest part of a library that uses them here only.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_PROCESSOR_TEXT_FILE_H_
#define TF_LSTM_OPS_BACKENDS_CPU_PROCESSOR_TEXT_FILE_H_

#include <string>

namespace tf_lstm_ops::cpu {

// Returns the text of a file, empty if it cannot be read. Throws
// std::bad_alloc.
std::string ReadText(const std::string& path);

// Returns the first word of a file, without white space around it; empty if
// there is none. Throws std::bad_alloc.
std::string ReadWord(const std::string& path);

}  // namespace tf_lstm_ops::cpu

#endif  // TF_LSTM_OPS_BACKENDS_CPU_PROCESSOR_TEXT_FILE_H_
