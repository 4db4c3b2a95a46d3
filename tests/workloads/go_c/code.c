// C functions that main.go calls. cgo compiles them without frame pointers by default.
int goes_on_in_go(int);

// Uses the register of the frame pointer for data, as the compiler does in larger functions.
int needs_every_register(int n) {
    register unsigned sum __asm__("rbp") = 0;
    for (int i = 0; i < n; i++) {
        sum += (unsigned)i * (unsigned)i % 7;
        __asm__ volatile("" : "+r"(sum));
    }
    return (int)sum;
}

int into_c(int n) {
    unsigned sum = 0;
    for (int i = 0; i < n; i++) sum += (unsigned)i * (unsigned)i % 7;
    return (int)sum;
}

int there_and_back(int n) {
    int sum = 0;
    for (int i = 0; i < 50; i++) sum += goes_on_in_go(n);
    return sum;
}
