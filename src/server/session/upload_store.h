// Uploaded files, in a folder of the data directory. A file arrives in slices, each of which begins where the previous
// one ended, so a lost connection costs one slice. It stays until it is used or abandoned. All state is on disk: the
// file's name has its id and final size, and its length is the progress. Thread-safe; blocking.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

#include "base/result.h"

namespace flamewire::server {

// A slice is a request body, which is held in memory before the sender is authenticated.
inline constexpr std::size_t max_upload_slice = std::size_t{1} << 20;

class UploadStore {
public:
    static constexpr std::uint64_t default_limit = std::uint64_t{8} << 30;
    static constexpr std::size_t max_uploads = 256;  // incomplete or unused ones

    explicit UploadStore(std::string folder, std::uint64_t limit_bytes = default_limit)
        : folder_(std::move(folder)), limit_bytes_(limit_bytes) {}

    struct Upload {
        std::string id;
        std::uint64_t got = 0, size = 0;
        [[nodiscard]] bool whole() const { return got == size; }
    };
    // The state of an upload; not_found. The sender chooses the id: 8 to 64 letters, digits, - and _.
    Result<Upload> find(const std::string& id) const;
    // Stores the bytes at `offset` of a file of `size` bytes. busy: the part here ends elsewhere (the message has the
    // offset), or it was begun with another size. too_large: there is no room for it.
    Result<Upload> add(const std::string& id, std::uint64_t offset, std::uint64_t size, std::string_view bytes);
    // The path of a complete upload. busy: parts are missing.
    Result<std::string> file(const std::string& id) const;
    // True if there was one.
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
