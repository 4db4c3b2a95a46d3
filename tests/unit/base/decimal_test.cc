#include "base/decimal.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <cstdio>
#include <limits>
#include <random>

using namespace flamewire;

TEST_CASE("whole numbers with a decimal point") {
    CHECK(decimal(1234, 2) == "12.34");
    CHECK(decimal(-5, 1) == "-0.5");
    CHECK(decimal(7, 3) == "0.007");
    CHECK(decimal(-42, 0) == "-42");
    CHECK(decimal(std::numeric_limits<std::int64_t>::min(), 1) == "-922337203685477580.8");
}

TEST_CASE("fractions are rounded like by printf") {
    const auto printed = [](double value, unsigned digits) {
        char text[400];
        std::snprintf(text, sizeof(text), "%.*f", static_cast<int>(digits), value);
        return std::string(text);
    };
    for (const double value : {0.0, 0.5, 1.5, 2.5, 0.999, 0.9999, 0.995, 12.125, 99.995, 1e9 + 0.25,
                               123456789.987654321, 9.2e18, -0.75, -2.5, 1.0 / 3})
        for (const unsigned digits : {0U, 1U, 2U, 3U}) CHECK(fixed(value, digits) == printed(value, digits));
    std::mt19937_64 random(3);
    std::uniform_real_distribution<double> exponent(-4, 17);
    for (int i = 0; i < 20'000; ++i) {
        const double value = std::pow(10.0, exponent(random));
        for (const unsigned digits : {0U, 1U, 2U, 3U, 9U}) REQUIRE(fixed(value, digits) == printed(value, digits));
    }
    CHECK(fixed(1e300, 0) == "9223372036854775808");
}
