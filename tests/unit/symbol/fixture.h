// Access to the fixture program: the paths of its builds, the addresses that it prints, and the lines of its marks.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

namespace flamewire::symbol {

inline std::string fixture(const std::string& build) { return std::string(FIXTURE_DIR) + "/" + build + "/program"; }

// Returns the output of a shell command.
std::string output_of(const std::string& command);
// The program's output: mark -> return address.
std::map<std::string, std::uint64_t> addresses_of(const std::string& program);
// The line of "MARK name" in the fixture's source.
std::uint32_t line_of(const std::string& mark);
// The raw build-id, as `readelf` shows it.
std::string build_id_of(const std::string& program);

// A folder that the destructor deletes.
class ScratchFolder {
public:
    ScratchFolder();
    ~ScratchFolder();
    ScratchFolder(const ScratchFolder&) = delete;
    ScratchFolder& operator=(const ScratchFolder&) = delete;
    // Copies `from` to `to` below the folder, with all missing parents. Returns the new path.
    std::string copy(const std::string& from, const std::string& to) const;
    [[nodiscard]] std::string path() const { return path_.string(); }

private:
    std::filesystem::path path_;
};

}  // namespace flamewire::symbol
