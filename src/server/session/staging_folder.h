// A folder in which an archive is unpacked before it becomes a session.
#pragma once

#include <string>
#include <utility>

#include "base/result.h"

namespace flamewire::server {

// The destructor deletes the folder unless it was renamed.
class StagingFolder {
public:
    static Result<StagingFolder> create(const std::string& data_dir);
    StagingFolder(StagingFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
    StagingFolder& operator=(StagingFolder&&) = delete;
    ~StagingFolder();
    [[nodiscard]] const std::string& path() const { return path_; }

private:
    explicit StagingFolder(std::string path) : path_(std::move(path)) {}
    std::string path_;
};

// Removes folders that a killed server left behind.
void remove_staging_folders(const std::string& data_dir);

}  // namespace flamewire::server
