// Declarations that the parts of the stepped program share.
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

typedef int (*Function)(int);

extern volatile int sink;

// program.c
int leaf(int value);
int tail_call(int value);
int with_frame(int value);
int with_alloca(int value);
int with_array(int value);
int many_arguments(int a, int b, int c, int d, int e, int f, int g, int h, int i, int j);
int pushes_arguments(int value);
int recursion(int depth);
int calls_pointer(Function function, int value);
int calls_library(int value);
int never_returns_inside(int value);
int in_handler_on_other_stack(void);
int with_everything_saved(int value);
int aligned_frame(int value);

// program_ARCH.S
int assembly_pushes(int value);
int assembly_moves_cfa(int value);
int assembly_calls(Function function, int value);

// exceptions.cc
int throws_through_frames(int depth);

#ifdef __cplusplus
}
#endif
