#include "cli/serve.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <vector>

#include "cli/command.h"
#include "cli/open_profile.h"
#include "server/options.h"
#include "server/server.h"

namespace flamewire::cli {
namespace {

namespace fs = std::filesystem;

// A temporary data directory of this process.
class TemporaryData {
public:
    static Result<TemporaryData> create() {
        std::string path = (fs::temp_directory_path() / "flamewire-serve-XXXXXX").string();
        if (::mkdtemp(path.data()) == nullptr) return fail_errno("cannot make the folder " + path, errno);
        return TemporaryData(path);
    }
    TemporaryData(TemporaryData&& other) noexcept : path_(std::exchange(other.path_, {})) {}
    TemporaryData& operator=(TemporaryData&&) = delete;
    ~TemporaryData() {
        std::error_code ignored;
        if (!path_.empty()) fs::remove_all(path_, ignored);
    }
    [[nodiscard]] const std::string& path() const { return path_; }

private:
    explicit TemporaryData(std::string path) : path_(std::move(path)) {}
    std::string path_;
};

struct ServeOptions {
    std::vector<std::string> files;
    server::ServerCommandLine server{"127.0.0.1"};
};

bool is_below(const std::string& path, const std::string& folder) {
    if (folder.empty()) return false;
    const fs::path relative = fs::absolute(path).lexically_normal().lexically_relative(folder);
    return !relative.empty() && *relative.begin() != "..";
}

// Files are not kept, unless --data-dir is given (`keep`) or the files are already in the data directory.
Result<int> serve_files(server::Options options, const std::vector<std::string>& files, bool keep) {
    bool all_there = true;
    std::vector<std::string> elsewhere;
    for (const std::string& file : files) {
        const std::string path = TRY(find_session(file, options.data_dir));
        const bool there = is_below(path, options.data_dir);
        all_there = all_there && there;
        if (!there || !keep) elsewhere.push_back(fs::absolute(path).string());
    }
    if (!all_there) options.imports.insert(options.imports.end(), elsewhere.begin(), elsewhere.end());
    if (keep || all_there) return server::run(options);
    const TemporaryData data = TRY(TemporaryData::create());
    options.data_dir = data.path();
    options.settings.module_directory = data.path() + "/modules";
    options.settings.upload_directory = data.path() + "/given";
    return server::run(options);
}

}  // namespace

Result<int> serve_session(const std::string& path, const std::string& data_dir) {
    server::Options options;
    options.data_dir = data_dir;
    options.settings.module_directory = data_dir + "/modules";
    options.settings.upload_directory = data_dir + "/given";
    options.settings.debuginfod_directory = data_dir + "/debuginfod";
    options.bind = "127.0.0.1";
    options.port = options.http_port = 0;
    return serve_files(std::move(options), {path}, false);
}

Action add_serve(CLI::App& command) {
    auto options = std::make_shared<ServeOptions>();
    command.add_option("FILE", options->files,
                       "sessions or profiles to show; they are kept only where --data-dir is given");
    options->server.add(command);
    return [options, &command]() -> Result<int> {
        return serve_files(TRY(options->server.finish()), options->files, command.count("--data-dir") > 0);
    };
}

}  // namespace flamewire::cli
