// The first bytes are a format file, the rest the data of a sample.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "perf/tracepoint_format.h"

using namespace flamewire;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view input(reinterpret_cast<const char*>(data), size);
    const std::size_t end = std::min(input.find('\0'), input.size());
    const std::string_view format = input.substr(0, end);
    const Bytes sample = as_bytes_view(input.substr(end));
    (void)perf::print_format_of(format);
    for (const perf::ValueField& field : perf::value_fields(perf::parse_tracepoint_format(format))) {
        for (const std::endian order : {std::endian::little, std::endian::big}) {
            (void)perf::value_of(field, sample, 0, order);
            if (perf::bytes_of(field, sample, order).size() > sample.size()) __builtin_trap();
        }
    }
    return 0;
}
