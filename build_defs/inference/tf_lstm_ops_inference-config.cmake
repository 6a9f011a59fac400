# Targets: tf_lstm_ops::inference, the shared library, and, where the package has the
# static library, tf_lstm_ops::inference_static.
get_filename_component(_tf_lstm_ops_package "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
set(_tf_lstm_ops_library "${_tf_lstm_ops_package}/_lib/libtf_lstm_ops_inference")

if(NOT TARGET tf_lstm_ops::inference)
  add_library(tf_lstm_ops::inference SHARED IMPORTED)
  set_target_properties(tf_lstm_ops::inference PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${_tf_lstm_ops_package}/include")
  if(WIN32)
    # MinGW links with the DLL itself.
    set_target_properties(tf_lstm_ops::inference PROPERTIES
      IMPORTED_IMPLIB "${_tf_lstm_ops_library}.so")
  endif()
  set_target_properties(tf_lstm_ops::inference PROPERTIES
    IMPORTED_LOCATION "${_tf_lstm_ops_library}.so")
  if(APPLE)
    set_target_properties(tf_lstm_ops::inference PROPERTIES
      IMPORTED_SONAME "@rpath/libtf_lstm_ops_inference.so")
  else()
    set_target_properties(tf_lstm_ops::inference PROPERTIES
      IMPORTED_SONAME "libtf_lstm_ops_inference.so")
  endif()
endif()

if(EXISTS "${_tf_lstm_ops_library}.a" AND NOT TARGET tf_lstm_ops::inference_static)
  include(CMakeFindDependencyMacro)
  find_dependency(Threads)
  add_library(tf_lstm_ops::inference_static STATIC IMPORTED)
  set_target_properties(tf_lstm_ops::inference_static PROPERTIES
    IMPORTED_LOCATION "${_tf_lstm_ops_library}.a"
    IMPORTED_LINK_INTERFACE_LANGUAGES C
    INTERFACE_INCLUDE_DIRECTORIES "${_tf_lstm_ops_package}/include"
    INTERFACE_LINK_OPTIONS "LINKER:-z,nodelete"
    INTERFACE_LINK_LIBRARIES "Threads::Threads;m;-static-libgcc")
endif()

unset(_tf_lstm_ops_library)
unset(_tf_lstm_ops_package)
