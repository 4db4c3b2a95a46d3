// Compressed imports: the limits of their growth.
#include "server/session/unpack.h"

#include <catch2/catch.hpp>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <filesystem>

#include "base/growth.h"

namespace flamewire::server {
namespace {

class TextSource final : public profile::ImportSource {
public:
    explicit TextSource(std::string text) : text_(std::move(text)) {}
    [[nodiscard]] std::uint64_t size() const override { return text_.size(); }
    Result<std::size_t> read_at(std::uint64_t offset, std::span<char> into) override {
        const std::size_t size =
            std::min<std::size_t>(into.size(), text_.size() - std::min(offset, size_t{text_.size()}));
        std::copy_n(text_.data() + offset, size, into.data());
        return size;
    }

private:
    std::string text_;
};

std::string zstd(const std::string& text) {
    std::string packed(ZSTD_compressBound(text.size()), '\0');
    packed.resize(ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 1));
    return packed;
}

Result<Unpacked> unpacked(std::string packed) {
    TextSource source(std::move(packed));
    return unpack(source, std::filesystem::temp_directory_path().string(), [](std::uint64_t) {});
}

TEST_CASE("compressed imports: 64 MiB are always permitted, more only up to 64 times the file size") {
    const std::string zeros(free_growth_bytes, '\0');
    const auto whole = unpacked(zstd(zeros));
    REQUIRE(whole.has_value());
    CHECK(whole->size == free_growth_bytes);
    const auto more = unpacked(zstd(zeros + "x"));
    REQUIRE_FALSE(more.has_value());
    CHECK(more.error().code == ErrorCode::too_large);
    CHECK(more.error().message.starts_with("the file unpacks to more than 64 MiB: beyond 64 MiB"));
    // Bytes that do not shrink raise the limit for those that do. A skippable frame follows the compressed one.
    std::string skipped("\x50\x2a\x4d\x18", 4);
    constexpr std::uint32_t skipped_bytes = 2 << 20;
    for (unsigned byte = 0; byte < 4; ++byte) skipped += static_cast<char>(skipped_bytes >> 8 * byte);
    skipped.append(skipped_bytes, 'x');
    CHECK(unpacked(zstd(zeros + "x") + skipped).has_value());
    CHECK_FALSE(unpacked(zstd(zeros + zeros + std::string(1 << 20, 'x')) + skipped).has_value());
}

TEST_CASE("compressed imports have a cap, whatever their size") {
    CHECK(growth_limit(std::uint64_t{1} << 40, max_unpacked_import_bytes) == max_unpacked_import_bytes);
}

}  // namespace
}  // namespace flamewire::server
