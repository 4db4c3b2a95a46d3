// What main.go calls. Compiled as cgo does by default: without frame pointers.
int goes_on_in_go(int);

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
