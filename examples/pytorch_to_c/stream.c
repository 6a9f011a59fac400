/* Computes a model step by step, without Python.
 *
 *   stream FILE < input.txt > output.txt
 *
 * FILE is the file that tf_lstm_ops.inference.Session.save wrote, of a model
 * with one input and one output. Reads the features of one step after the other
 * as text, and prints the output after each step, one line a step. README.md in
 * this folder tells how to build the program. It is valid C11 and valid C++17.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tf_lstm_ops.h>

/* Whether a call succeeded; else prints what failed and why. */
static int Succeeded(int32_t code, const char* what,
                     const tf_lstm_ops_error* error) {
  if (code == TF_LSTM_OPS_OK) return 1;
  fprintf(stderr, "stream: cannot %s: %s: %s\n", what,
          tf_lstm_ops_code_text(code), error->text);
  return 0;
}

static tf_lstm_ops_error NewError(void) {
  tf_lstm_ops_error error;
  memset(&error, 0, sizeof error);
  error.struct_size = sizeof error;
  return error;
}

/* Reads the features of a step. Returns whether there are any. */
static int ReadStep(float* x, int64_t count) {
  for (int64_t k = 0; k < count; ++k) {
    if (scanf("%f", &x[k]) != 1) return 0;
  }
  return 1;
}

static void PrintStep(const float* y, int64_t count) {
  for (int64_t k = 0; k < count; ++k) {
    printf(k + 1 < count ? "%.9g " : "%.9g\n", (double)y[k]);
  }
}

/* Computes all steps of the input. The stream keeps the states of the LSTM. */
static int Run(tf_lstm_ops_stream* stream, float* x, int64_t x_count, float* y,
               int64_t y_count) {
  tf_lstm_ops_error error = NewError();
  while (ReadStep(x, x_count)) {
    const int32_t code =
        tf_lstm_ops_stream_run(stream, 1, x, x_count, y, y_count, &error);
    if (!Succeeded(code, "compute a step", &error)) return 0;
    PrintStep(y, y_count);
  }
  if (!feof(stdin)) {
    fprintf(stderr, "stream: the input must be numbers\n");
    return 0;
  }
  return 1;
}

static int RunSession(const tf_lstm_ops_session* session) {
  tf_lstm_ops_error error = NewError();
  tf_lstm_ops_session_info info;
  tf_lstm_ops_stream* stream = NULL;
  memset(&info, 0, sizeof info);
  info.struct_size = sizeof info;
  if (!Succeeded(tf_lstm_ops_session_get_info(session, &info, &error),
                 "read the sizes of the model", &error) ||
      !Succeeded(tf_lstm_ops_stream_open(session, 1, &stream, &error),
                 "open a stream", &error)) {
    return 0;
  }
  float* x = (float*)calloc((size_t)info.input_size + 1, sizeof *x);
  float* y = (float*)calloc((size_t)info.output_size + 1, sizeof *y);
  const int is_done = x != NULL && y != NULL &&
                      Run(stream, x, info.input_size, y, info.output_size);
  free(y);
  free(x);
  tf_lstm_ops_stream_close(stream);
  return is_done;
}

int main(int argc, char** argv) {
  tf_lstm_ops_error error = NewError();
  tf_lstm_ops_session* session = NULL;
  if (argc != 2) {
    fprintf(stderr, "usage: stream FILE < input.txt > output.txt\n");
    return 2;
  }
  if (!Succeeded(tf_lstm_ops_session_open(argv[1], NULL, &session, &error),
                 "open the model", &error)) {
    return 1;
  }
  const int is_done = RunSession(session);
  tf_lstm_ops_session_close(session);
  return is_done ? 0 : 1;
}
