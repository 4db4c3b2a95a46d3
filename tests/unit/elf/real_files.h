// Real ELF files of this machine as test inputs, and the output of the programs that serve as oracles.
#pragma once

#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/file.h"
#include "elf/elf_file.h"

namespace flamewire::elf {

inline std::string output_of(const std::string& command) {
    const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), &pclose);
    std::string text;
    std::array<char, 4096> part;
    while (pipe && std::fgets(part.data(), part.size(), pipe.get()) != nullptr) text += part.data();
    return text;
}

// This test program, and the shared libraries that it uses.
inline std::vector<std::string> files_of_this_process() {
    std::vector<std::string> files = {std::filesystem::read_symlink("/proc/self/exe").string()};
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
        const std::size_t path = line.find('/');
        if (path == std::string::npos || line.find(".so", path) == std::string::npos) continue;
        if (files.back() != line.substr(path)) files.push_back(line.substr(path));
    }
    return files;
}

// An open ELF file with its headers.
struct RealFile {
    explicit RealFile(const std::string& path)
        : fd(open_read(path).value()),
          source(source_of_fd(fd.get())),
          header(read_header(source).value()),
          sections(read_sections(source, header).value()) {}

    UniqueFd fd;
    ByteSource source;
    Header header;
    std::vector<Section> sections;
};

// A folder that is removed with all its files.
class ScratchFolder {
public:
    ScratchFolder() {
        std::string name = (std::filesystem::temp_directory_path() / "elf-test-XXXXXX").string();
        if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
        path_ = name;
    }
    ~ScratchFolder() { std::filesystem::remove_all(path_); }
    ScratchFolder(const ScratchFolder&) = delete;
    ScratchFolder& operator=(const ScratchFolder&) = delete;
    [[nodiscard]] std::string file(const std::string& name) const { return (path_ / name).string(); }
    void write(const std::string& name, const std::string& text) const { std::ofstream(path_ / name) << text; }
    // Runs the command in the folder, and requires that it succeeds.
    void run(const std::string& command) const {
        const std::string text = output_of("cd " + path_.string() + " && { " + command + "; } 2>&1 && echo SUCCESS");
        if (!text.ends_with("SUCCESS\n")) throw std::runtime_error(command + ":\n" + text);
    }

private:
    std::filesystem::path path_;
};

}  // namespace flamewire::elf
