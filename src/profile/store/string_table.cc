#include "profile/store/string_table.h"

#include <cstring>
#include <random>

namespace flamewire::profile {

namespace {

constexpr std::size_t block_size = std::size_t{64} * 1024;

// Up to eight bytes as a number.
std::uint64_t load_bytes(std::string_view bytes) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data(), bytes.size());
    return word;
}

HashSecrets make_secrets() {
    std::random_device device;
    const auto random = [&] { return (static_cast<std::uint64_t>(device()) << 32) | device(); };
    return {random(), random(), random()};
}

}  // namespace

const HashSecrets hash_secrets = make_secrets();

std::uint64_t hash_text(std::string_view text) {
    std::uint64_t hash = hash_seed() ^ text.size();
    while (text.size() >= sizeof(std::uint64_t)) {
        hash = hash_mix(hash, load_bytes(text.substr(0, sizeof(std::uint64_t))));
        text.remove_prefix(sizeof(std::uint64_t));
    }
    return hash_mix(hash, load_bytes(text));
}

StringTable::StringTable() : data_{""}, size_{0} {}

StringId StringTable::intern(std::string_view text) {
    if (text.empty()) return 0;
    const std::uint64_t hash = hash_text(text);
    if (const StringId known = index_.find(hash, [&](StringId id) { return (*this)[id] == text; })) return known;
    const StringId id = narrow32(data_.size());
    append_tight(data_, keep(text));
    append_tight(size_, narrow32(text.size()));
    index_.insert(hash, id, [&](StringId other) { return hash_text((*this)[other]); });
    return id;
}

StringId StringTable::find(std::string_view text) const {
    if (text.empty()) return 0;
    return index_.find(hash_text(text), [&](StringId id) { return (*this)[id] == text; });
}

std::size_t StringTable::memory_bytes() const {
    return block_bytes_ + blocks_.capacity() * sizeof(blocks_[0]) + data_.capacity() * sizeof(data_[0]) +
           size_.capacity() * sizeof(size_[0]) + index_.memory_bytes();
}

const char* StringTable::keep(std::string_view text) {
    if (text.size() > block_free_) {
        // A long text gets its own block, so that the rest of the current block is not wasted.
        const bool own_block = text.size() > block_size / 8;
        const std::size_t size = own_block ? text.size() : block_size;
        blocks_.push_back(std::make_unique_for_overwrite<char[]>(size));
        block_bytes_ += size;
        if (own_block) {
            std::memcpy(blocks_.back().get(), text.data(), text.size());
            return blocks_.back().get();
        }
        block_next_ = blocks_.back().get();
        block_free_ = block_size;
    }
    char* const kept = block_next_;
    std::memcpy(kept, text.data(), text.size());
    block_next_ += text.size();
    block_free_ -= text.size();
    return kept;
}

}  // namespace flamewire::profile
