#include "server/session/imports.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <utility>

#include "base/utf8.h"
#include "server/session/import_file.h"

namespace flamewire::server {
namespace {

constexpr std::size_t max_listed_imports = 50, max_name_bytes = 255;

std::string last_part(const std::string& name) {
    const std::string last = std::filesystem::path(name).filename().string();
    return last.empty() ? "import" : valid_utf8(last.substr(0, max_name_bytes));
}

}  // namespace

std::string Imports::begin(std::string path, std::string name, std::function<void(const Import&)> finished) {
    const auto job = std::make_shared<Job>();
    job->import.name = last_part(name);
    job->finished = std::move(finished);
    std::string id;
    {
        const std::lock_guard lock(mutex_);
        id = job->import.id = std::to_string(next_);
        jobs_[next_++] = job;
        while (jobs_.size() > max_listed_imports) {
            const auto oldest =
                std::ranges::find_if(jobs_, [](const auto& entry) { return entry.second->stage == Stage::ended; });
            if (oldest == jobs_.end()) break;
            jobs_.erase(oldest);
        }
    }
    thread_.post([this, job, path = std::move(path)] { run(job, path); });
    return id;
}

void Imports::run(const JobPtr& job, const std::string& path) {
    {
        const std::lock_guard lock(mutex_);
        if (job->stage != Stage::waiting) return;
        job->stage = Stage::running;
    }
    const Result<std::string> session = guarded_import(*job, path);
    {
        const std::lock_guard lock(mutex_);
        job->stage = Stage::ending;
    }
    // From here on it cannot be canceled, so `cancelled` is final.
    if (session && job->cancelled) (void)catalog_.remove(*session);
    end(*job, session);
}

void Imports::end(Job& job, const Result<std::string>& session) {
    Import import;
    {
        const std::lock_guard lock(mutex_);
        import = job.import;
    }
    import.state = job.cancelled ? State::cancelled : session ? State::done : State::failed;
    if (import.state == State::done) import.session = *session;
    if (import.state == State::failed) import.problem = session.error().message;
    // Call `finished` before the new state is visible, so that nothing of an ended import is left to do.
    job.finished(import);
    {
        const std::lock_guard lock(mutex_);
        job.import = std::move(import);
        job.stage = Stage::ended;
    }
    changed_();
}

// An unexpected exception, such as out of memory, ends the import and not the server.
Result<std::string> Imports::guarded_import(Job& job, const std::string& path) {
    try {
        return import_file(job, path);
    } catch (const std::exception& error) {
        return fail(ErrorCode::io, fmt::format("the import failed: {}", error.what()));
    }
}

Result<std::string> Imports::import_file(Job& job, const std::string& path) {
    const symbol::Config config = symbols_.symbol_config();
    const std::string& name = job.import.name;
    const ImportTarget target{
        .scratch_dir = catalog_.data_dir(),
        .symbols = config,
        .create = [&](const wire::RecordingId& recording) { return catalog_.create(recording, name); },
        .import_stream = [&]() -> Result<std::shared_ptr<Session>> {
            return catalog_.get(TRY(catalog_.import_stream(path, name)));
        },
        .import_archive = [&](profile::ImportSource& archive) -> Result<std::shared_ptr<Session>> {
            return catalog_.get(TRY(catalog_.import_archive(archive, name)));
        },
        .discard = [&](const Session& session) { (void)catalog_.remove(session.id()); },
        .progress = [&](std::uint64_t read, std::uint64_t total) { progress(job, read, total); },
        .memory_bytes = memory_bytes_,
        .cancelled = [&] { return job.cancelled.load(); },
    };
    const std::shared_ptr<Session> session = TRY(server::import_file(path, name, target));
    symbols_.resolve(session);
    catalog_.save(*session);
    return session->id();
}

void Imports::progress(Job& job, std::uint64_t read_bytes, std::uint64_t total_bytes) {
    const std::lock_guard lock(mutex_);
    job.import.read_bytes = read_bytes;
    job.import.total_bytes = total_bytes;
}

Imports::JobPtr Imports::find_job(const std::string& id) const {
    for (const auto& [number, job] : jobs_)
        if (job->import.id == id) return job;
    return nullptr;
}

Result<Imports::Import> Imports::cancel(const std::string& id) {
    JobPtr job;
    bool waits = false;
    {
        const std::lock_guard lock(mutex_);
        job = find_job(id);
        if (!job) return fail(ErrorCode::not_found, fmt::format("there is no import {:.100}", id));
        if (job->stage == Stage::ending || job->stage == Stage::ended)
            return fail(ErrorCode::busy,
                        fmt::format("the import of {} has ended already: delete its session", job->import.name));
        job->cancelled = true;
        waits = job->stage == Stage::waiting;
        if (waits) job->stage = Stage::ending;
    }
    if (waits) end(*job, std::string());
    const std::lock_guard lock(mutex_);
    return job->import;
}

void Imports::stop() {
    for (const Import& import : list())
        if (import.state == State::running) (void)cancel(import.id);
    thread_.stop();
}

std::vector<Imports::Import> Imports::list() const {
    const std::lock_guard lock(mutex_);
    std::vector<Import> all;
    for (auto entry = jobs_.rbegin(); entry != jobs_.rend(); ++entry) all.push_back(entry->second->import);
    return all;
}

std::optional<Imports::Import> Imports::find(const std::string& id) const {
    const std::lock_guard lock(mutex_);
    const JobPtr job = find_job(id);
    return job ? std::optional(job->import) : std::nullopt;
}

}  // namespace flamewire::server
