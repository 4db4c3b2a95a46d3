// Functions with different frames: saved registers, a variable-length array, alignment of the stack, landing pads, cold
// parts, a noreturn call at the end, many arguments. Compiled in many ways, but never run.
#ifndef NO_EXCEPTIONS
struct Guard {
    ~Guard();
};
void may_throw(int);
void with_landing_pad(int n) {
    Guard guard;
    try {
        may_throw(n);
    } catch (int m) {
        may_throw(m + 1);
    }
}
#endif

extern "C" {
int outside(int*, int, long, long, long, long, long, long, long);
[[noreturn]] void ends(int);

int leaf(int n) { return n * 3; }
int saves(int a, int b, int c, int d) {
    int x[4] = {a, b, c, d};
    const int first = outside(x, a, 1, 2, 3, 4, 5, 6, 7), second = outside(x, b, 8, 7, 6, 5, 4, 3, 2);
    return outside(x, c, first, second, d, 0, 0, 0, 0) + first * second;
}
int variable(int n) {
    int* array = static_cast<int*>(__builtin_alloca(static_cast<unsigned>(n)));
    return outside(array, n, 0, 0, 0, 0, 0, 0, 0) + array[0];
}
int aligned(int n) {
    alignas(64) int array[32];
    array[n] = n;
    return outside(array, n, 0, 0, 0, 0, 0, 0, 0) + array[1];
}
int large(int n) {
    int array[5000];
    return outside(array, n, 0, 0, 0, 0, 0, 0, 0) + array[n];
}
void noreturn_last(int n) {
    if (n != 0) ends(n);
    int x = n;
    outside(&x, n, 0, 0, 0, 0, 0, 0, 0);
    ends(n + 1);
}
int with_cold_part(int n) {
    if (__builtin_expect(n == 7, 0)) {
        int x = n;
        return saves(n, 1, 2, outside(&x, n, 0, 0, 0, 0, 0, 0, 0));
    }
    return leaf(n) + variable(n);
}
}
