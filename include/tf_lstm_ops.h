/* Recurrent models without TensorFlow: sessions and streams for inference,
 * layers for training.
 *
 * A session computes a graph of layers, such as LSTM, GRU, Conv1D and Dense,
 * from a file that tf_lstm_ops.inference.Session.save wrote. Its weights may be
 * float32, bfloat16 or int8. A stream computes the same graph step by step and
 * keeps the states between calls. A layer is one recurrent layer: its forward
 * and its backward pass.
 *
 * Types. Numbers of sessions are float, those of layers float, double or
 * bfloat16. Indices of an embedding int32_t. Arrays are contiguous with the
 * last axis fastest. B is the number of rows of a batch, T the number of time
 * steps, I the input size and O the output size of the session.
 *
 * Calls. A session with one input of type float and one output has calls
 * with the arguments x and y. The calls of *_run_arrays take all inputs and
 * outputs of any session.
 *
 * Errors. A function that can fail returns a code, TF_LSTM_OPS_OK on success.
 * If its argument `error` is not null, a failure sets it. A failed call writes
 * no output and changes no state.
 *
 * Ownership. The caller owns all arrays and structs. *_open creates an object.
 * It sets `*session`, `*stream` or `*layer` on success only. *_close frees an
 * object, and does nothing with null. No other thread may then be in a call
 * with the object. Close the streams of a session before the session. An output
 * must not overlap an input.
 *
 * Threads. Any number of threads may use a session or a layer at the same time.
 * One thread at a time may use a stream. If two do, one of them gets
 * TF_LSTM_OPS_FAILED_PRECONDITION.
 *
 * Fork. A child of fork() may use its parent's sessions, layers and streams,
 * also if other threads of the parent are in calls at the fork. If one of them
 * is in a call with a stream, the calls of the child with this stream return
 * TF_LSTM_OPS_FAILED_PRECONDITION. _Fork() and clone() are not supported.
 *
 * Unloading. A session of several threads starts threads that do not end. On
 * Linux the shared library therefore stays in memory after dlclose. A plugin
 * that contains the static library must stay, too: link it with
 * -Wl,-z,nodelete.
 *
 * Real time. In a session with one thread, tf_lstm_ops_stream_run, _run_arrays,
 * _reset, _get_state and _set_state allocate no memory, take no lock and make
 * no system call.
 *
 * Floating-point mode. A call sets the mode, and restores that of the caller at
 * its end. In the mode of a call denormal numbers count as zero, results are
 * rounded to nearest, and nothing traps.
 *
 * Version. Before the first call, a program checks that
 * tf_lstm_ops_api_version() is not lower than TF_LSTM_OPS_API_VERSION. It may
 * omit this if the header and the library come from one package.
 *
 * Structs. A struct begins with its size, which the caller sets to sizeof of
 * the struct. A later version adds members at the end and accepts the sizes of
 * older ones. A missing member of an input struct has its default. A missing
 * member of an output struct is not written.
 *
 * Process. No C++ exception leaves a function. No function ends the process,
 * prints or sets a signal handler.
 */
#ifndef TF_LSTM_OPS_H_
#define TF_LSTM_OPS_H_

#include <stdint.h>

#if defined(_WIN32)
#define TF_LSTM_OPS_API __declspec(dllexport)
#elif defined(__GNUC__)
#define TF_LSTM_OPS_API __attribute__((visibility("default")))
#else
#define TF_LSTM_OPS_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this interface. */
#define TF_LSTM_OPS_API_VERSION 3

/* Codes; their values are those of TensorFlow's TF_Code. */
enum {
  TF_LSTM_OPS_OK = 0,
  TF_LSTM_OPS_INVALID_ARGUMENT = 3,
  TF_LSTM_OPS_NOT_FOUND = 5,           /* the file cannot be read */
  TF_LSTM_OPS_RESOURCE_EXHAUSTED = 8,  /* no memory */
  TF_LSTM_OPS_FAILED_PRECONDITION = 9, /* two threads use one stream */
  TF_LSTM_OPS_UNIMPLEMENTED = 12,      /* a version that the library lacks */
  TF_LSTM_OPS_DATA_LOSS = 15           /* the file is not valid */
};

/* Reasons: more about an error than its code. */
enum {
  TF_LSTM_OPS_REASON_NONE = 0,
  TF_LSTM_OPS_REASON_NOT_A_SESSION_FILE = 1 /* it begins with other bytes */
};

/* What went wrong. A failure sets the members that struct_size includes. Before
 * a call, a program sets `layer` to -1 and the other members to 0: an older
 * library sets none behind `text`. */
typedef struct tf_lstm_ops_error {
  uint32_t struct_size;
  int32_t code;
  char text[248]; /* ends with 0; may be cut */
  int32_t reason; /* of the enum of reasons */
  /* The layer that the text is about, counted from 0 in the file, else -1. The
   * text names it in bytes layer_begin to layer_end - 1, as "layer 2". A
   * program that knows the layer may put its name there. */
  int32_t layer;
  int32_t layer_begin;
  int32_t layer_end;
} tf_lstm_ops_error;

/* A model that is open. */
typedef struct tf_lstm_ops_session tf_lstm_ops_session;

/* The states of some rows, and the memory to compute their next steps. */
typedef struct tf_lstm_ops_stream tf_lstm_ops_stream;

/* How to open a session. */
typedef struct tf_lstm_ops_session_options {
  uint32_t struct_size;
  int32_t threads; /* of a call, from 1 to 256; 0: 1 */
} tf_lstm_ops_session_options;

/* The sizes of a session. */
typedef struct tf_lstm_ops_session_info {
  uint32_t struct_size;
  int32_t threads;
  int64_t input_size;       /* I, of input 0: elements of a step */
  int64_t output_size;      /* O, of output 0; 0 if it depends on the call */
  int64_t state_size;       /* floats of the states of one row */
  int32_t returns_sequence; /* 1: output 0 has an axis of time */
  int32_t can_stream;       /* 0: a layer needs more than the steps so far */
  /* Since version 2. */
  int32_t input_count;
  int32_t output_count;
  int32_t state_count;    /* arrays of the states */
  int32_t blocking_layer; /* the first layer that cannot stream, else -1 */
} tf_lstm_ops_session_info;

/* The types of arrays. The last two are those of layers, since version 3. */
enum {
  TF_LSTM_OPS_FLOAT32 = 0,
  TF_LSTM_OPS_INT32 = 1,
  TF_LSTM_OPS_FLOAT64 = 2,
  TF_LSTM_OPS_BFLOAT16 = 3
};

/* The largest rank of an array. */
#define TF_LSTM_OPS_MAX_RANK 6

/* The type of `mask` of an array. Lengths are those of version 3. */
#define TF_LSTM_OPS_MASK 0    /* uint8_t [B, T], not 0 where a step is valid */
#define TF_LSTM_OPS_LENGTHS 1 /* int32_t [B], the valid steps of each row */

/* An input or output of a call, or what a session needs. Since version 2. */
typedef struct tf_lstm_ops_array {
  uint32_t struct_size;
  int32_t type;                        /* one of the types of arrays */
  int32_t rank;                        /* the number of axes */
  int32_t mask_type;                   /* TF_LSTM_OPS_MASK or _LENGTHS */
  int64_t shape[TF_LSTM_OPS_MAX_RANK]; /* -1: any size */
  void* data;                          /* an input is not written to */
  /* Of an input of a session's call, and of input 0 of a layer's: which steps
   * are valid. Null: all are. */
  const void* mask;
} tf_lstm_ops_array;

/* Returns TF_LSTM_OPS_API_VERSION of the library. */
TF_LSTM_OPS_API int32_t tf_lstm_ops_api_version(void);

/* Returns a text for a code. It lives as long as the library. */
TF_LSTM_OPS_API const char* tf_lstm_ops_code_text(int32_t code);

/* Returns the name of the instruction set in use, such as "x86-64-v3". It lives
 * as long as the library.
 */
TF_LSTM_OPS_API const char* tf_lstm_ops_selected_instruction_set(void);

/* Opens the file at `path`, a string in UTF-8. `options` may be null. The
 * session maps the file, which must not change while the session is open.
 *
 * Errors: NOT_FOUND; DATA_LOSS, where the text names the field, what was
 * expected and what came; UNIMPLEMENTED, a file of a later version;
 * INVALID_ARGUMENT, a wrong option or a null argument; RESOURCE_EXHAUSTED.
 */
TF_LSTM_OPS_API int32_t tf_lstm_ops_session_open(
    const char* path, const tf_lstm_ops_session_options* options,
    tf_lstm_ops_session** session, tf_lstm_ops_error* error);

/* Opens a session from `data`, the `size` bytes of a file. `data` is aligned to
 * 64 bytes, else the code is INVALID_ARGUMENT. The bytes must outlive the
 * session and must not change. Other errors are those of
 * tf_lstm_ops_session_open.
 */
TF_LSTM_OPS_API int32_t tf_lstm_ops_session_open_data(
    const void* data, uint64_t size, const tf_lstm_ops_session_options* options,
    tf_lstm_ops_session** session, tf_lstm_ops_error* error);

/* Frees a session, whose streams are closed. Does nothing with null. */
TF_LSTM_OPS_API void tf_lstm_ops_session_close(tf_lstm_ops_session* session);

/* Sets the members of `info` as far as info->struct_size goes. */
TF_LSTM_OPS_API int32_t tf_lstm_ops_session_get_info(
    const tf_lstm_ops_session* session, tf_lstm_ops_session_info* info,
    tf_lstm_ops_error* error);

/* Sets `*data` and `*size` to the bytes of the session's file. They are valid
 * until the session is closed. After tf_lstm_ops_session_open_data they are the
 * bytes that the caller passed.
 */
TF_LSTM_OPS_API int32_t tf_lstm_ops_session_get_data(
    const tf_lstm_ops_session* session, const void** data, uint64_t* size,
    tf_lstm_ops_error* error);

/* Computes whole sequences from zero states.
 *
 * x: [B, T, I]. mask: [B, T], not 0 where a step is valid; null: all steps are.
 * y: [B, T, O] if the session returns a sequence, else [B, O]. y_count: the
 * number of elements of y. B and T may be 0. Without steps y [B, O] is that of
 * zero states: a recurrent layer gives zeros to the layers behind it.
 *
 * Errors: INVALID_ARGUMENT; RESOURCE_EXHAUSTED.
 */
TF_LSTM_OPS_API int32_t
tf_lstm_ops_session_run(const tf_lstm_ops_session* session, int64_t batch,
                        int64_t time, const float* x, const uint8_t* mask,
                        float* y, int64_t y_count, tf_lstm_ops_error* error);

/* The same with lengths: [B], the number of the valid steps of each row, from 0
 * to T; null: all steps are valid. Since version 3.
 */
TF_LSTM_OPS_API int32_t tf_lstm_ops_session_run_lengths(
    const tf_lstm_ops_session* session, int64_t batch, int64_t time,
    const float* x, const int32_t* lengths, float* y, int64_t y_count,
    tf_lstm_ops_error* error);

/* Describes input `index`: its type, rank and shape, without data. `name` may
 * be null; `*name` lives as long as the session. Since version 2, as all
 * functions of tf_lstm_ops_array.
 *
 * Error: INVALID_ARGUMENT.
 */
TF_LSTM_OPS_API int32_t tf_lstm_ops_session_get_input(
    const tf_lstm_ops_session* session, int32_t index, tf_lstm_ops_array* input,
    const char** name, tf_lstm_ops_error* error);

/* Describes output `index`, likewise. */
TF_LSTM_OPS_API int32_t tf_lstm_ops_session_get_output(
    const tf_lstm_ops_session* session, int32_t index,
    tf_lstm_ops_array* output, const char** name, tf_lstm_ops_error* error);

/* Describes state `index` of a stream of one row: [1, ...]. */
TF_LSTM_OPS_API int32_t tf_lstm_ops_session_get_state(
    const tf_lstm_ops_session* session, int32_t index, tf_lstm_ops_array* state,
    tf_lstm_ops_error* error);

/* Sets type, rank and shape of all outputs of a call with inputs of these
 * shapes. It reads no data.
 *
 * Error: INVALID_ARGUMENT, where the text names the layer that the shapes do
 * not fit.
 */
TF_LSTM_OPS_API int32_t tf_lstm_ops_session_infer_shapes(
    const tf_lstm_ops_session* session, const tf_lstm_ops_array* inputs,
    int32_t input_count, tf_lstm_ops_array* outputs, int32_t output_count,
    tf_lstm_ops_error* error);

/* Computes all outputs from all inputs, as tf_lstm_ops_session_run. The shapes
 * of the outputs are those of tf_lstm_ops_session_infer_shapes.
 *
 * Errors: INVALID_ARGUMENT, also where an index of an embedding is out of
 * range; RESOURCE_EXHAUSTED.
 */
TF_LSTM_OPS_API int32_t tf_lstm_ops_session_run_arrays(
    const tf_lstm_ops_session* session, const tf_lstm_ops_array* inputs,
    int32_t input_count, tf_lstm_ops_array* outputs, int32_t output_count,
    tf_lstm_ops_error* error);

/* Opens a stream of B rows, whose states are zero.
 *
 * Errors: INVALID_ARGUMENT, also where a layer needs more than the steps so
 * far, for instance because it reads the sequence backwards;
 * RESOURCE_EXHAUSTED.
 */
TF_LSTM_OPS_API int32_t
tf_lstm_ops_stream_open(const tf_lstm_ops_session* session, int64_t batch,
                        tf_lstm_ops_stream** stream, tf_lstm_ops_error* error);

/* Frees a stream. Does nothing with null. */
TF_LSTM_OPS_API void tf_lstm_ops_stream_close(tf_lstm_ops_stream* stream);

/* Computes the next `steps` steps, one or more.
 *
 * x: [B, steps, I]. y: [B, steps, O] if the session returns a sequence, else
 * [B, O], the output after the last of these steps. x_count and y_count: the
 * numbers of elements.
 *
 * Errors: INVALID_ARGUMENT; FAILED_PRECONDITION, another thread uses the
 * stream.
 */
TF_LSTM_OPS_API int32_t tf_lstm_ops_stream_run(tf_lstm_ops_stream* stream,
                                               int64_t steps, const float* x,
                                               int64_t x_count, float* y,
                                               int64_t y_count,
                                               tf_lstm_ops_error* error);

/* Computes the next steps of all inputs, [B, steps, ...], which have no masks.
 * Outputs have the shape [B, steps, ...], or [B, ...] behind a layer that
 * returns its last step.
 *
 * Errors: those of tf_lstm_ops_stream_run; INVALID_ARGUMENT also where an index
 * of an embedding is out of range. No state changes then.
 */
TF_LSTM_OPS_API int32_t tf_lstm_ops_stream_run_arrays(
    tf_lstm_ops_stream* stream, const tf_lstm_ops_array* inputs,
    int32_t input_count, tf_lstm_ops_array* outputs, int32_t output_count,
    tf_lstm_ops_error* error);

/* Sets the states of `count` rows to zero. rows: their numbers, from 0 to B-1.
 * With null `rows` and count 0, all rows.
 */
TF_LSTM_OPS_API int32_t tf_lstm_ops_stream_reset(tf_lstm_ops_stream* stream,
                                                 const int64_t* rows,
                                                 int64_t count,
                                                 tf_lstm_ops_error* error);

/* Copies the states to or from `state`, of count = B * state_size elements. The
 * order is that of the layers: of a recurrent layer h [B, P], then of an LSTM
 * the cell state [B, H]; of a causal convolution the last steps of its input
 * [B, (k - 1) dilation, C].
 */
TF_LSTM_OPS_API int32_t tf_lstm_ops_stream_get_state(tf_lstm_ops_stream* stream,
                                                     float* state,
                                                     int64_t count,
                                                     tf_lstm_ops_error* error);
TF_LSTM_OPS_API int32_t tf_lstm_ops_stream_set_state(tf_lstm_ops_stream* stream,
                                                     const float* state,
                                                     int64_t count,
                                                     tf_lstm_ops_error* error);

/* Layers: the passes of one recurrent layer, for training. Since version 3.
 * The static library, and a library that was built for sessions only, have none
 * of these functions. Their version does not show this.
 */

/* The cells. Their equations and the layouts of their weights are those of
 * Keras 3: gates in the order i, f, c, o of an LSTM and z, r, h of a GRU. */
enum {
  TF_LSTM_OPS_LSTM = 0,
  TF_LSTM_OPS_GRU = 1,              /* reset_after=True */
  TF_LSTM_OPS_GRU_RESET_BEFORE = 2, /* reset_after=False */
  TF_LSTM_OPS_SIMPLE_RNN = 3,
  TF_LSTM_OPS_LAYER_NORM_LSTM = 4, /* of Haste and of TensorFlow Addons */
  TF_LSTM_OPS_LAYER_NORM_GRU = 5
};

/* A layer: its cell and its options. The arrays of a call have the weights and
 * the sizes. */
typedef struct tf_lstm_ops_layer tf_lstm_ops_layer;

/* The options of a layer. A member of value 0 or null has its default: "tanh",
 * "sigmoid", no clip, an epsilon of 1e-5. */
typedef struct tf_lstm_ops_layer_options {
  uint32_t struct_size;
  int32_t cell;
  int32_t type;          /* of all arrays: _FLOAT32, _FLOAT64 or _BFLOAT16 */
  int32_t bidirectional; /* 1: a second layer reads backwards */
  int32_t go_backwards;  /* 1: steps in descending order */
  int32_t returns_last_step;        /* 1: output [B, 1, P], else [B, T, P] */
  int32_t zero_output_for_mask;     /* 1: outputs of masked steps are 0 */
  int32_t saves_nothing;            /* 1: no backward pass will follow */
  const char* activation;           /* of the candidate and the state */
  const char* recurrent_activation; /* of the gates */
  float cell_clip;                  /* of an LSTM; 0: none */
  float proj_clip;                  /* of an LSTM with a projection; 0: none */
  float epsilon;                    /* of layer normalisation */
  int32_t carries_normalized_state; /* of TF_LSTM_OPS_LAYER_NORM_LSTM */
} tf_lstm_ops_layer_options;

/* The lists of arguments of a layer. */
enum {
  TF_LSTM_OPS_FORWARD_INPUTS = 0,
  TF_LSTM_OPS_FORWARD_OUTPUTS = 1,
  TF_LSTM_OPS_BACKWARD_INPUTS = 2,
  TF_LSTM_OPS_BACKWARD_OUTPUTS = 3
};

/* Creates a layer.
 *
 * Errors: INVALID_ARGUMENT, also where a cell does not have an option;
 * RESOURCE_EXHAUSTED.
 */
TF_LSTM_OPS_API int32_t
tf_lstm_ops_layer_open(const tf_lstm_ops_layer_options* options,
                       tf_lstm_ops_layer** layer, tf_lstm_ops_error* error);

/* Frees a layer. Does nothing with null. */
TF_LSTM_OPS_API void tf_lstm_ops_layer_close(tf_lstm_ops_layer* layer);

/* Returns the name of argument `index` of a list, null after the last one. The
 * name lives as long as the library. The lists of an LSTM follow. H is the
 * number of units, P the size of the output: that of the projection, else H.
 *
 * FORWARD_INPUTS: x [B, T, I], whose member `mask` says which steps are valid;
 * initial_h [B, P]; initial_c [B, H]; kernel [I, 4H]; recurrent_kernel [P, 4H];
 * bias [4H]; peephole [3, H], of the gates i, f, o; projection [H, P];
 * input_dropout [4, B, I] and recurrent_dropout [4, B, P], the multipliers of x
 * and h of each gate.
 *
 * FORWARD_OUTPUTS: output [B, T or 1, P]; final_h [B, P]; final_c [B, H];
 * reserve [.], what the backward pass reads.
 *
 * BACKWARD_INPUTS: FORWARD_INPUTS; output and reserve of the forward pass;
 * output_grad, final_h_grad and final_c_grad.
 *
 * BACKWARD_OUTPUTS: the gradients with respect to the FORWARD_INPUTS without
 * the two dropouts.
 *
 * A GRU has three gates. It has no initial_c, peephole, projection and final_c.
 * Its bias is [2, 3H], or [3H] of TF_LSTM_OPS_GRU_RESET_BEFORE. A simple RNN
 * has the arguments of such a GRU with one gate. The dropouts have one row for
 * each gate. A layer-normalised cell has no peephole and projection. Its scales
 * are arguments after the bias. A bidirectional layer has the arguments of its
 * second layer after those of the first, with the prefix `backward_`. It has
 * one output [B, T or 1, 2P] and one reserve.
 */
TF_LSTM_OPS_API const char* tf_lstm_ops_layer_argument(
    const tf_lstm_ops_layer* layer, int32_t list, int32_t index);

/* Sets type, rank and shape of the FORWARD_OUTPUTS of a call with inputs of
 * these shapes. It reads the mask, because `reserve` has room for the valid
 * steps only, and no other data. Another mask may need another size.
 *
 * Errors: those of tf_lstm_ops_layer_forward.
 */
TF_LSTM_OPS_API int32_t tf_lstm_ops_layer_infer_shapes(
    const tf_lstm_ops_layer* layer, const tf_lstm_ops_array* inputs,
    int32_t input_count, tf_lstm_ops_array* outputs, int32_t output_count,
    tf_lstm_ops_error* error);

/* Computes the forward pass on at most `threads` threads, from 1 to 256. The
 * result does not depend on their number.
 *
 * Inputs are the FORWARD_INPUTS, outputs the FORWARD_OUTPUTS, in the order of
 * tf_lstm_ops_layer_argument. The caller allocates all. An input that the layer
 * can do without has null `data` and the rank 0: bias, peephole, projection and
 * the dropouts. Final states with null `data` are not written.
 *
 * Errors: INVALID_ARGUMENT, where the text names the array, what was expected
 * and what came; RESOURCE_EXHAUSTED.
 */
TF_LSTM_OPS_API int32_t tf_lstm_ops_layer_forward(
    tf_lstm_ops_layer* layer, int32_t threads, const tf_lstm_ops_array* inputs,
    int32_t input_count, tf_lstm_ops_array* outputs, int32_t output_count,
    tf_lstm_ops_error* error);

/* Computes the backward pass, on at most `threads` threads. Inputs are the
 * BACKWARD_INPUTS. Those that the forward pass read or wrote must not have
 * changed since. The gradients with respect to final states may be null: they
 * count as zeros. The outputs have the shapes of the arrays that they are
 * gradients of. An output with null `data` is not computed.
 *
 * Errors: those of tf_lstm_ops_layer_forward.
 */
TF_LSTM_OPS_API int32_t tf_lstm_ops_layer_backward(
    tf_lstm_ops_layer* layer, int32_t threads, const tf_lstm_ops_array* inputs,
    int32_t input_count, tf_lstm_ops_array* outputs, int32_t output_count,
    tf_lstm_ops_error* error);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TF_LSTM_OPS_H_ */
