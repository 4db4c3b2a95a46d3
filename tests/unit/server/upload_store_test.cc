// Files in slices: resumed, bounded, never mixed up.
#include "server/session/upload_store.h"

#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "recording.h"

using namespace flamewire;
using namespace flamewire::server;
using flamewire::test::ScratchDirectory;

namespace {

std::string text_of(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

TEST_CASE("an upload continues where its last slice ended, also after a restart") {
    const ScratchDirectory data;
    const std::string folder = data.path() + "/uploads";
    {
        UploadStore uploads(folder);
        CHECK(uploads.find("file-0001").error().code == ErrorCode::not_found);
        CHECK(uploads.add("file-0001", 0, 10, "abcd").value().got == 4);
        CHECK(uploads.file("file-0001").error().code == ErrorCode::busy);
    }
    UploadStore uploads(folder);
    const auto half = uploads.find("file-0001").value();
    CHECK(half.got == 4);
    CHECK(half.size == 10);
    CHECK_FALSE(half.whole());
    // A slice that is repeated, too early, or for a file of another size.
    CHECK(uploads.add("file-0001", 0, 10, "abcd").error().message.find("offset 4") != std::string::npos);
    CHECK(uploads.add("file-0001", 6, 10, "gh").error().code == ErrorCode::busy);
    CHECK(uploads.add("file-0001", 4, 11, "ef").error().code == ErrorCode::busy);
    CHECK(uploads.add("file-0001", 4, 10, "efghij").value().whole());
    CHECK(text_of(uploads.file("file-0001").value()) == "abcdefghij");
    CHECK(uploads.add("file-0001", 10, 10, "k").error().code == ErrorCode::invalid);
    CHECK(uploads.remove("file-0001").value());
    CHECK(uploads.find("file-0001").error().code == ErrorCode::not_found);
    CHECK_FALSE(uploads.remove("file-0001"));
}

TEST_CASE("an upload has a plain id, a size that fits and slices of a bounded length") {
    const ScratchDirectory data;
    UploadStore uploads(data.path() + "/uploads", 100);
    for (const char* id : {"", "short", "../../etc/passwd", "with space", "dots.are.none", "slash/inside"}) {
        INFO(id);
        CHECK(uploads.add(id, 0, 4, "abcd").error().code == ErrorCode::invalid);
        CHECK_FALSE(uploads.find(id));
        CHECK_FALSE(uploads.remove(id));
    }
    CHECK(uploads.add(std::string(65, 'a'), 0, 4, "abcd").error().code == ErrorCode::invalid);
    CHECK(uploads.add("file-0001", 0, 4, "").error().code == ErrorCode::invalid);
    CHECK(uploads.add("file-0001", 0, 4, "abcde").error().code == ErrorCode::invalid);
    CHECK(uploads.add("file-0001", ~std::uint64_t{0}, 4, "abcd").error().code == ErrorCode::invalid);
    CHECK(uploads.add("file-0001", 0, std::uint64_t{1} << 40, std::string(max_upload_slice + 1, 'x')).error().code ==
          ErrorCode::too_large);
    CHECK(uploads.add("file-0001", 0, 101, "abcd").error().code == ErrorCode::too_large);
    CHECK(uploads.add("file-0001", 0, 100, "abcd").value().got == 4);
    CHECK(uploads.remove("file-0001").value());
    UploadStore large(data.path() + "/large");
    CHECK(large.add("file-0001", 0, std::uint64_t{1} << 30, std::string(std::size_t{1} << 20, 'x')).value().got ==
          1U << 20);
    // Two uploads of 60 bytes do not fit while the first one is stored.
    CHECK(uploads.add("file-0001", 0, 60, std::string(50, 'x')).value().got == 50);
    CHECK(uploads.add("file-0002", 0, 60, "abcd").error().code == ErrorCode::too_large);
    // An upload expires after a day without slices.
    for (const auto& file : std::filesystem::directory_iterator(data.path() + "/uploads"))
        std::filesystem::last_write_time(file, std::filesystem::file_time_type::clock::now() - std::chrono::hours(25));
    CHECK(uploads.add("file-0002", 0, 60, "abcd").value().got == 4);
    CHECK_FALSE(uploads.find("file-0001"));
}

TEST_CASE("uploads reserve the size that they announce, and their number is limited") {
    const ScratchDirectory data;
    UploadStore uploads(data.path() + "/uploads", 1000);
    CHECK(uploads.add("file-0001", 0, 600, "abcd").value().got == 4);
    const auto refused = uploads.add("file-0002", 0, 401, "abcd");
    CHECK(refused.error().code == ErrorCode::too_large);
    CHECK(refused.error().message.find("give up one first") != std::string::npos);
    CHECK(uploads.add("file-0002", 0, 400, "abcd").value().got == 4);
    // An upload's own reservation does not count against it.
    CHECK(uploads.add("file-0001", 4, 600, std::string(596, 'x')).value().whole());
    CHECK(uploads.remove("file-0001").value());
    CHECK(uploads.remove("file-0002").value());
    const auto id = [](std::size_t i) { return "many-" + std::to_string(10'000 + i); };
    for (std::size_t i = 0; i < UploadStore::max_uploads; ++i) REQUIRE(uploads.add(id(i), 0, 2, "a"));
    const auto more = uploads.add("one-more", 0, 2, "a");
    CHECK(more.error().code == ErrorCode::too_large);
    CHECK(more.error().message == "at most 256 uploads can wait: finish or cancel one first");
    CHECK(uploads.add(id(7), 1, 2, "b").value().whole());
    CHECK(uploads.remove(id(7)).value());
    CHECK(uploads.add("one-more", 0, 2, "a"));
}
