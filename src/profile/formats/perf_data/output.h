// Writes numbers and strings of an exported perf.data file, in this machine's byte order.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace flamewire::profile::perf_data {

class Output {
public:
    Output& u64(std::uint64_t value) { return number(value); }
    Output& u32(std::uint32_t value) { return number(value); }
    Output& u16(std::uint16_t value) { return number(value); }
    Output& u8(std::uint8_t value) { return number(value); }
    Output& bytes(std::string_view bytes) {
        bytes_ += bytes;
        return *this;
    }
    // Appends at least one NUL, up to a multiple of `align`. A NUL inside the text ends it.
    Output& padded(std::string_view text, std::size_t align = 8) {
        text = text.substr(0, text.find('\0'));
        bytes_ += text;
        bytes_.append(align - text.size() % align, '\0');
        return *this;
    }
    // A string of a header feature: its size, then the text padded to a multiple of 64 (perf's NAME_ALIGN).
    Output& counted(std::string_view text) {
        constexpr std::size_t align = 64;
        text = text.substr(0, text.find('\0'));
        u32(static_cast<std::uint32_t>(text.size() + align - text.size() % align));
        return padded(text, align);
    }
    [[nodiscard]] std::size_t size() const { return bytes_.size(); }
    [[nodiscard]] const std::string& text() const { return bytes_; }
    std::string take() { return std::move(bytes_); }

private:
    template <class T>
    Output& number(T value) {
        bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
        return *this;
    }
    std::string bytes_;
};

}  // namespace flamewire::profile::perf_data
