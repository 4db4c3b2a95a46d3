// A capture that a test writes by hand, with entries as agent/capture/format.h defines them.
#pragma once

#include <string>
#include <string_view>

#include "agent/capture/format.h"
#include "base/varint.h"
#include "wire/frame.h"

namespace flamewire::replay {

// The beginning of a result.
inline std::string result(std::int64_t value) { return varints({zigzag(value)}); }

class WrittenCapture {
public:
    WrittenCapture& add(agent::Call call, std::string_view arguments, std::string_view result) {
        chunk_.push_back(static_cast<char>(call));
        append_varint(chunk_, arguments.size());
        chunk_ += arguments;
        append_varint(chunk_, result.size());
        chunk_ += result;
        return *this;
    }
    WrittenCapture& round() { return add(agent::Call::perf_poll, {}, result(0)); }
    // A file of /proc that is read at once.
    WrittenCapture& file(std::string_view path, std::uint64_t handle, std::string_view content) {
        return add(agent::Call::open, varints({0}) + std::string(path), result(static_cast<std::int64_t>(handle)))
            .add(agent::Call::read, varints({handle}),
                 result(static_cast<std::int64_t>(content.size())) + std::string(content))
            .add(agent::Call::read, varints({handle}), result(0));
    }
    [[nodiscard]] std::string bytes() const {
        std::string file(agent::capture_magic);
        const std::string compressed = wire::compress(chunk_);
        for (const unsigned shift : {0U, 8U, 16U, 24U})
            file.push_back(static_cast<char>(compressed.size() >> shift & 0xFFU));
        return file + compressed;
    }

private:
    std::string chunk_;
};

}  // namespace flamewire::replay
