// Whether this process has a PluggableDevice of TensorFlow.
#ifndef TF_LSTM_OPS_TF_DEVICE_PLUGIN_H_
#define TF_LSTM_OPS_TF_DEVICE_PLUGIN_H_

namespace tf_lstm_ops::tf {

// Returns whether a library of this process exports SE_InitPlugin, the function
// by which TensorFlow asks a plugin for its device. The plugin may have been
// loaded at any time. False on systems other than Linux and macOS.
bool HasDevicePlugin();

}  // namespace tf_lstm_ops::tf

#endif  // TF_LSTM_OPS_TF_DEVICE_PLUGIN_H_
