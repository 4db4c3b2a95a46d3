/* Calls GMP's low-level functions, which Debian builds from assembly. The library is installed without its header. */
typedef unsigned long limb;
extern void __gmpn_mul_n(limb*, const limb*, const limb*, long);
extern void __gmpn_sqr(limb*, const limb*, long);
extern limb __gmpn_add_n(limb*, const limb*, const limb*, long);
extern limb __gmpn_lshift(limb*, const limb*, long, unsigned);
extern limb __gmpn_divrem_1(limb*, long, const limb*, long, limb);
extern void __gmpn_tdiv_qr(limb*, limb*, long, const limb*, long, const limb*, long);

int main(void) {
    limb a[32], b[32], product[64], quotient[64];
    for (int i = 0; i < 32; ++i) {
        a[i] = (limb)i * 0x9e3779b97f4a7c15ul + 1;
        b[i] = ~a[i] * 3;
    }
    for (long limbs = 1; limbs < 14; limbs += 3) {
        __gmpn_mul_n(product, a, b, limbs);
        __gmpn_sqr(product, a, limbs);
        __gmpn_add_n(product, a, b, limbs);
        __gmpn_lshift(product, a, limbs, 5);
        __gmpn_divrem_1(quotient, 0, product, limbs, 12345);
    }
    __gmpn_mul_n(product, a, b, 20);
    __gmpn_tdiv_qr(quotient, a, 0, product, 24, b, 10);
    return 0;
}
