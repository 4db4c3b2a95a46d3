#include "server/session/imports.h"

#include <filesystem>
#include <utility>

#include "server/session/import_file.h"

namespace flamewire::server {
namespace {

constexpr std::size_t imports_kept = 50;

std::string last_part(const std::string& name) {
    std::string last = std::filesystem::path(name).filename().string();
    return last.empty() ? "import" : last;
}

}  // namespace

std::string Imports::begin(std::string path, std::string name, std::function<void(const Import&)> finished) {
    std::uint64_t number = 0;
    {
        const std::lock_guard lock(mutex_);
        number = next_++;
        imports_[number].id = std::to_string(number);
        imports_[number].name = last_part(name);
        while (imports_.size() > imports_kept) imports_.erase(imports_.begin());
    }
    slow_.post([this, number, path = std::move(path), name = last_part(name), finished = std::move(finished)] {
        run(number, path, name, finished);
        changed_();
    });
    return std::to_string(number);
}

void Imports::run(std::uint64_t number, const std::string& path, const std::string& name,
                  const std::function<void(const Import&)>& finished) {
    const Result<std::string> session = import_file(number, path, name);
    Import import;
    {
        const std::lock_guard lock(mutex_);
        import = imports_[number];  // a new one when so many came after it that it was let go
    }
    import.id = std::to_string(number);
    import.name = name;
    import.state = session ? State::done : State::failed;
    if (session)
        import.session = *session;
    else
        import.problem = session.error().message;
    // Who sees that it ended finds nothing of it left to do.
    finished(import);
    const std::lock_guard lock(mutex_);
    imports_[number] = std::move(import);
}

Result<std::string> Imports::import_file(std::uint64_t number, const std::string& path, const std::string& name) {
    const symbol::Config config = slow_.symbol_config();
    const ImportPlace place{
        .scratch_dir = catalog_.data_dir(),
        .symbols = config,
        .create = [&](const wire::RecordingId& recording) { return catalog_.create(recording, name); },
        .adopt = [&]() -> Result<std::shared_ptr<Session>> { return catalog_.get(TRY(catalog_.adopt(path, name))); },
        .adopt_archive = [&](profile::ImportSource& archive) -> Result<std::shared_ptr<Session>> {
            return catalog_.get(TRY(catalog_.adopt_archive(archive, name)));
        },
        .discard = [&](const Session& session) { (void)catalog_.remove(session.id()); },
        .progress = [&](std::uint64_t read, std::uint64_t total) { progress(number, read, total); },
        .memory_bytes = memory_bytes_,
    };
    const std::shared_ptr<Session> session = TRY(server::import_file(path, name, place));
    slow_.finish(session);  // addresses get their names
    catalog_.save(*session);
    return session->id();
}

void Imports::progress(std::uint64_t number, std::uint64_t read_bytes, std::uint64_t total_bytes) {
    const std::lock_guard lock(mutex_);
    const auto found = imports_.find(number);
    if (found == imports_.end()) return;
    found->second.read_bytes = read_bytes;
    found->second.total_bytes = total_bytes;
}

std::vector<Imports::Import> Imports::list() const {
    const std::lock_guard lock(mutex_);
    std::vector<Import> all;
    for (auto entry = imports_.rbegin(); entry != imports_.rend(); ++entry) all.push_back(entry->second);
    return all;
}

std::optional<Imports::Import> Imports::find(const std::string& id) const {
    const std::lock_guard lock(mutex_);
    for (const auto& [number, import] : imports_)
        if (import.id == id) return import;
    return {};
}

}  // namespace flamewire::server
