#include "unwind/tables/search_table.h"

#include <algorithm>
#include <limits>
#include <string>

#include "base/byte_reader.h"
#include "unwind/tables/encoded_pointer.h"

namespace flamewire::unwind {
namespace {

constexpr std::uint8_t datarel_sdata4 = 0x3b;  // DW_EH_PE_datarel | DW_EH_PE_sdata4
constexpr std::size_t entry_size = 8;
constexpr std::size_t longest_header = 4 + 2 * 16;
constexpr std::uint64_t most_checked = std::uint64_t{16} << 20;

std::int32_t sdata4(Bytes bytes, std::size_t at, bool big_endian) {
    return static_cast<std::int32_t>(load_number(bytes.data() + at, 4, byte_order(big_endian)));
}

}  // namespace

SearchTable::SearchTable(ModuleFile& file, FileRange range, std::uint8_t address_size, bool big_endian)
    : file_(file), range_(range), address_size_(address_size), big_endian_(big_endian) {
    ByteReader in(file.all(range.offset, static_cast<std::size_t>(std::min<std::uint64_t>(range.size, longest_header))),
                  byte_order(big_endian));
    const PointerBases bases{.data = range.address};
    constexpr std::uint8_t version = 1;
    if (in.u8() != version) return;
    const std::uint8_t frames_encoding = in.u8(), count_encoding = in.u8(), table_encoding = in.u8();
    frames_ = read_encoded_pointer(in, frames_encoding, range.address + in.position(), bases, address_size);
    if (!frames_) return;
    const auto count = read_encoded_pointer(in, count_encoding, range.address + in.position(), bases, address_size);
    // A table with another encoding, or with a count that exceeds it, cannot be searched.
    if (!count || table_encoding != datarel_sdata4 || *count > (range.size - in.position()) / entry_size) return;
    table_ = range.offset + in.position();
    count_ = *count;
}

std::optional<std::int32_t> SearchTable::relative_start(std::uint64_t position) {
    const Bytes bytes = file_.all(table_ + position * entry_size, 4);
    if (bytes.empty()) return std::nullopt;
    return sdata4(bytes, 0, big_endian_);
}

std::optional<SearchTable::Entry> SearchTable::entry_at(std::uint64_t position) {
    if (position >= count_) return std::nullopt;
    const Bytes bytes = file_.all(table_ + position * entry_size, entry_size);
    if (bytes.empty()) return std::nullopt;
    const auto absolute = [&](std::size_t at) {
        return truncate_address(
            range_.address + static_cast<std::uint64_t>(std::int64_t{sdata4(bytes, at, big_endian_)}), address_size_);
    };
    return Entry{absolute(0), absolute(4)};
}

std::optional<std::uint64_t> SearchTable::find(std::uint64_t address) {
    const std::int64_t distance = static_cast<std::int64_t>(address - range_.address);
    // Starts are compared as stored in the table, relative to the header.
    if (count_ == 0 || distance < std::numeric_limits<std::int32_t>::min()) return std::nullopt;
    // The first entry that starts above `address` is in [low, high]. First search page by page through the cache, then
    // in the last few entries, which mostly are in one page.
    constexpr std::uint64_t few = 64;
    std::uint64_t low = 0, high = count_;
    while (high - low > few) {
        const std::uint64_t middle = low + (high - low) / 2;
        const auto start = relative_start(middle);
        if (!start) return std::nullopt;
        (*start <= distance ? low : high) = middle + (*start <= distance ? 1 : 0);
    }
    const Bytes rest = file_.all(table_ + low * entry_size, static_cast<std::size_t>(high - low) * entry_size);
    if (rest.empty() && high != low) return std::nullopt;
    std::size_t first = 0, last = rest.size() / entry_size;
    while (first < last) {
        const std::size_t middle = first + (last - first) / 2;
        if (sdata4(rest, middle * entry_size, big_endian_) <= distance)
            first = middle + 1;
        else
            last = middle;
    }
    low += first;
    if (low == 0) return std::nullopt;
    return low - 1;
}

bool SearchTable::is_sorted() const {
    constexpr std::size_t step = (std::size_t{64} << 10) / entry_size;
    // More than any linker writes. The entries themselves are indexed instead.
    if (count_ > most_checked) return false;
    std::int32_t last = std::numeric_limits<std::int32_t>::min();
    for (std::uint64_t position = 0; position < count_; position += step) {
        const std::size_t size =
            static_cast<std::size_t>(std::min<std::uint64_t>(step, count_ - position)) * entry_size;
        const std::string bytes = file_.read_once(table_ + position * entry_size, size);
        if (bytes.size() != size) return false;
        for (std::size_t at = 0; at < size; at += entry_size) {
            const std::int32_t start = sdata4(as_bytes_view(bytes), at, big_endian_);
            if (start < last) return false;
            last = start;
        }
    }
    return true;
}

}  // namespace flamewire::unwind
