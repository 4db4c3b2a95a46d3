// How a bench program reports: a line of JSON for each figure, which tests/bench/run.py reads. It uses printf, as the
// agent's flavor of the libraries, in which some benches are compiled, has no floating point in fmt.
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
    std::optional<double> bar;  // lower is better; none: not compared
    std::string peer;           // what it is compared with, or how it came about
};

// `value` with that many digits after the point.
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

// --smoke as the last argument: each path runs once with little input. What is printed then measures nothing.
inline bool take_smoke(int& argc, char** argv) {
    if (argc < 2 || std::strcmp(argv[argc - 1], "--smoke") != 0) return false;
    --argc;
    return true;
}

}  // namespace flamewire::bench
