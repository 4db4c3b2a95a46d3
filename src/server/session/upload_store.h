// Files that people send: a folder of the data directory. One arrives in slices, each where the one before it ended, so a
// lost line costs a slice; it stays until it is used or given up. The disk is all the state: a file's name says its id
// and how long it will be, its length how much is here. Thread-safe; blocking.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

#include "base/result.h"

namespace flamewire::server {

// A slice is the body of a request, and that is held in memory before anybody can look who sends it.
inline constexpr std::size_t max_upload_slice = std::size_t{1} << 20;

class UploadStore {
public:
    static constexpr std::uint64_t default_limit = std::uint64_t{8} << 30;
    static constexpr std::size_t max_uploads = 256;  // that wait

    explicit UploadStore(std::string folder, std::uint64_t limit_bytes = default_limit)
        : folder_(std::move(folder)), limit_bytes_(limit_bytes) {}

    struct Upload {
        std::string id;
        std::uint64_t got = 0, size = 0;
        [[nodiscard]] bool whole() const { return got == size; }
    };
    // What is here of it; not_found. The id is the sender's: 8 to 64 letters, digits, - and _.
    Result<Upload> find(const std::string& id) const;
    // Takes the bytes at `offset` of a file of `size` bytes. busy: what is here ends elsewhere (the sentence says where),
    // or it was begun with another size. too_large: there is no room for it.
    Result<Upload> add(const std::string& id, std::uint64_t offset, std::uint64_t size, std::string_view bytes);
    // The file of a whole one; busy while parts are missing.
    Result<std::string> file(const std::string& id) const;
    // True when there was one.
    Result<bool> remove(const std::string& id);

private:
    struct Entry {
        std::string path;
        Upload upload;
    };
    Result<Entry> find_locked(const std::string& id) const;
    Result<bool> make_room(const Upload& upload) const;

    const std::string folder_;
    const std::uint64_t limit_bytes_;
    mutable std::mutex mutex_;
};

}  // namespace flamewire::server
