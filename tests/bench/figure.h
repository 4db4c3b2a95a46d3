// Prints one line of JSON per figure, which tests/bench/run.py reads. It uses printf, because the agent's variant of
// the libraries, with which some benches are built, formats no floating-point numbers in fmt.
#pragma once

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

namespace flamewire::bench {

struct Figure {
    std::string name;
    double value = 0;
    std::string unit;
    std::optional<double> bar;  // upper limit; none: not compared
    std::string peer;           // the compared figure, or details
};

// `value` with this many digits after the decimal point.
inline std::string fixed(double value, int digits) {
    char text[64];
    std::snprintf(text, sizeof text, "%.*f", digits, value);
    return text;
}

inline std::string json_string(std::string_view text) {
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') out += '\\';
        out += c;
    }
    return out + '"';
}

inline void print(const Figure& figure) {
    if (!std::isfinite(figure.value)) {
        std::fprintf(stderr, "%s: not a finite number\n", figure.name.c_str());
        std::exit(1);
    }
    std::printf("{\"figure\":%s,\"value\":%s,\"unit\":%s,\"bar\":%s,\"peer\":%s}\n", json_string(figure.name).c_str(),
                fixed(figure.value, 4).c_str(), json_string(figure.unit).c_str(),
                figure.bar ? fixed(*figure.bar, 4).c_str() : "null", json_string(figure.peer).c_str());
    std::fflush(stdout);
}

// Removes --smoke if it is the last argument. Each path then runs once with little input, and measures nothing.
inline bool take_smoke(int& argc, char** argv) {
    if (argc < 2 || std::strcmp(argv[argc - 1], "--smoke") != 0) return false;
    --argc;
    return true;
}

}  // namespace flamewire::bench
