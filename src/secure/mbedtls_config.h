/* What of mbed TLS 2.28 is compiled: TLS 1.2, client and server, with TLS_ECDHE_PSK_WITH_CHACHA20_POLY1305_SHA256 over X25519 and nothing
 * else. Random numbers are the kernel's (channel.cc). */
#pragma once

#define MBEDTLS_HAVE_ASM
#define MBEDTLS_PLATFORM_C

#define MBEDTLS_BIGNUM_C
#define MBEDTLS_CHACHA20_C
#define MBEDTLS_CHACHAPOLY_C
#define MBEDTLS_CIPHER_C
#define MBEDTLS_ECDH_C
#define MBEDTLS_ECP_C
#define MBEDTLS_ECP_DP_CURVE25519_ENABLED
#define MBEDTLS_MD_C
#define MBEDTLS_POLY1305_C
#define MBEDTLS_SHA224_C
#define MBEDTLS_SHA256_C

/* All operations on curves get the kernel's random numbers from TLS. */
#define MBEDTLS_ECP_NO_INTERNAL_RNG
#define MBEDTLS_KEY_EXCHANGE_ECDHE_PSK_ENABLED
#define MBEDTLS_SSL_CIPHERSUITES MBEDTLS_TLS_ECDHE_PSK_WITH_CHACHA20_POLY1305_SHA256
#define MBEDTLS_SSL_ALL_ALERT_MESSAGES
#define MBEDTLS_SSL_CLI_C
#define MBEDTLS_SSL_EXTENDED_MASTER_SECRET
#define MBEDTLS_SSL_PROTO_TLS1_2
#define MBEDTLS_SSL_SRV_C
#define MBEDTLS_SSL_TLS_C

#include <mbedtls/check_config.h>
