#include "server/session/debug_fetch.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "base/file.h"
#include "base/path.h"
#include "symbol/symbolizer.h"

namespace flamewire::server {
namespace {

// Two threads, so that one slow download does not block the others. More would be impolite to public servers.
constexpr unsigned fetch_threads = 2;
constexpr std::chrono::minutes failure_delay{10};
constexpr std::chrono::seconds unreachable_delay{15};
constexpr std::chrono::milliseconds progress_interval{250};
// Limit for cached source file results. Dropped ones are requested again.
constexpr std::size_t max_cached_sources = 1024;

std::uint64_t size_of(const std::string& path) {
    const auto status = file_status(path);
    return status ? status->size_bytes : 0;
}

bool is_unreachable(const Result<std::string>& outcome) {
    return !outcome && outcome.error().code == ErrorCode::closed;
}

}  // namespace

DebugFetch::DebugFetch(std::string folder, std::uint64_t limit_bytes, Events events)
    : folder_(std::move(folder)), limit_bytes_(limit_bytes), events_(std::move(events)) {
    for (unsigned i = 0; i < fetch_threads; ++i) threads_.emplace_back([this] { run(); });
}

void DebugFetch::request(const std::shared_ptr<Session>& session) {
    const auto lacking = session->symbols().missing_debug_info();
    if (lacking.empty()) return;
    bool reported = false;
    {
        const std::lock_guard lock(mutex_);
        for (const WantedModule& wanted : lacking) {
            const std::string& id = wanted.identity.build_id;
            Job& job = jobs_[id];
            const bool known = std::ranges::any_of(
                job.waiting, [&](const auto& one) { return one.second == wanted.id && one.first.lock() == session; });
            if (!known) job.waiting.emplace_back(session, wanted.id);
            if (!job.pending && Clock::now() >= job.retry_at) {
                job.identity = wanted.identity;
                job.no_executable = wanted.no_executable;
                job.progress = {};
                job.pending = true;
                queue_.push_back({id, {}});
            } else if (known) {
                continue;
            }
            session->symbols().set_debug_fetch(wanted.id, job.progress);
            reported = true;
        }
        if (!notice_text_.empty()) session->status().set_notice("debuginfod", notice_text_, notice_remedy_);
    }
    wake_.notify_all();
    if (reported) events_.changed(session);
}

void DebugFetch::stop() {
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
    }
    wake_.notify_all();
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
}

void DebugFetch::run() {
    symbol::DebuginfodClient client;
    std::unique_lock lock(mutex_);
    while (!stopping_) {
        if (queue_.empty()) {
            wake_.wait(lock);
        } else if (Clock::now() < paused_until_) {
            wake_.wait_until(lock, paused_until_);
        } else {
            const Task task = std::move(queue_.front());
            queue_.pop_front();
            lock.unlock();
            if (task.file.empty())
                fetch(client, task.build_id);
            else
                fetch_source(client, task);
            lock.lock();
        }
    }
}

void DebugFetch::fetch(symbol::DebuginfodClient& client, const std::string& build_id) {
    Clock::time_point reported{};
    const symbol::DebuginfodClient::Progress progress = [&](std::uint64_t got, std::uint64_t total) {
        const auto now = Clock::now();
        if (total != 0 && now - reported >= progress_interval) {
            reported = now;
            publish_progress(build_id, {ModuleFetch::State::arriving, got, total, ""});
        }
        return is_running();
    };
    // Fetch the executable before the debug info: once the debug info is here, the build is not requested again.
    auto executable = fetch_executable(client, build_id, progress);
    if (is_unreachable(executable)) return finish(build_id, executable);
    auto debug_info = client.debug_info(build_id, progress);
    const bool executable_alone = executable && !debug_info && debug_info.error().code == ErrorCode::not_found;
    finish(build_id, executable_alone ? executable : debug_info);
}

// The executable or library: it has the code, and it has symbols if no server has debug info. not_found also if it is
// here already.
Result<std::string> DebugFetch::fetch_executable(symbol::DebuginfodClient& client, const std::string& build_id,
                                                 const symbol::DebuginfodClient::Progress& progress) {
    symbol::ModuleIdentity identity;
    {
        const std::lock_guard lock(mutex_);
        const Job& job = jobs_[build_id];
        if (!job.no_executable) return fail(ErrorCode::not_found, "it is not wanted");
        identity = job.identity;
    }
    auto outcome = client.executable(build_id, progress);
    if (outcome) {
        symbol::limit_debuginfod_folder(folder_, limit_bytes_, build_id);
        events_.arrived(identity);
    } else if (!is_unreachable(outcome) && outcome.error().code != ErrorCode::not_found) {
        spdlog::warn("{}: {}", identity.path, outcome.error().message);
    }
    return outcome;
}

bool DebugFetch::is_running() {
    const std::lock_guard lock(mutex_);
    return !stopping_;
}

Result<std::string> DebugFetch::source(const std::shared_ptr<Session>& session,
                                       const std::vector<std::string>& build_ids, const std::string& file) {
    Error why{ErrorCode::not_found, 0, "no debuginfod server has it"};
    const std::lock_guard lock(mutex_);
    if (sources_.size() >= max_cached_sources)
        std::erase_if(sources_, [](const auto& one) { return !one.second.pending; });
    for (const std::string& build_id : build_ids) {
        const Task task{build_id, file};
        Source& source = sources_[task];
        if (!source.pending && source.outcome && file_status(*source.outcome)) return source.outcome;
        if (!source.pending && Clock::now() < source.retry_at && !source.outcome) {
            why = source.outcome.error();
            continue;
        }
        if (!source.pending && Clock::now() < paused_until_) return fail(ErrorCode::closed, notice_text_);
        if (!std::exchange(source.pending, true)) queue_.push_front(task);  // a user waits for it
        if (std::ranges::none_of(source.waiting, [&](const auto& one) { return one.lock() == session; }))
            source.waiting.push_back(session);
        wake_.notify_one();
        return fail(ErrorCode::busy, "it is being requested");
    }
    return std::unexpected(why);
}

void DebugFetch::fetch_source(symbol::DebuginfodClient& client, const Task& task) {
    const auto outcome =
        client.source(task.build_id, task.file, [&](std::uint64_t, std::uint64_t) { return is_running(); });
    if (outcome) symbol::limit_debuginfod_folder(folder_, limit_bytes_, task.build_id);
    std::vector<std::weak_ptr<Session>> waiting;
    {
        const std::lock_guard lock(mutex_);
        if (stopping_) return;
        Source& source = sources_[task];
        waiting = std::exchange(source.waiting, {});
        source.outcome = outcome;
        source.pending = false;
        source.retry_at =
            Clock::now() + (is_unreachable(outcome) ? std::chrono::seconds(unreachable_delay) : failure_delay);
    }
    if (!outcome) spdlog::info("{}: {}", task.file, outcome.error().message);
    for (const auto& weak : waiting)
        if (const auto session = weak.lock()) {
            session->symbols().source_changed();
            events_.changed(session);
        }
}

void DebugFetch::finish(const std::string& build_id, const Result<std::string>& outcome) {
    symbol::ModuleIdentity identity;
    bool stopping = false;
    {
        const std::lock_guard lock(mutex_);
        Job& job = jobs_[build_id];
        identity = job.identity;
        stopping = stopping_;
        if (is_unreachable(outcome) && !stopping) {
            // Requeue it behind builds that another server may have.
            paused_until_ = Clock::now() + unreachable_delay;
            queue_.push_back({build_id, {}});
        } else {
            job.pending = false;
            job.retry_at = Clock::now() + failure_delay;
        }
    }
    if (stopping) return;
    if (is_unreachable(outcome)) {
        spdlog::warn("debug info of {}: {}", identity.path, outcome.error().message);
        set_notice_everywhere(
            fmt::format("Names come from files on this machine, because {}.", outcome.error().message),
            fmt::format("check that the server runs and that its address is right; it is tried again every {} s",
                        unreachable_delay.count()));
        return publish_progress(build_id, {ModuleFetch::State::interrupted, 0, 0, outcome.error().message});
    }
    set_notice_everywhere("", "");
    if (!outcome) {
        if (outcome.error().code != ErrorCode::not_found)
            spdlog::warn("debug info of {}: {}", identity.path, outcome.error().message);
        return publish_progress(build_id, {ModuleFetch::State::refused, 0, 0, outcome.error().message});
    }
    const std::uint64_t bytes = size_of(*outcome);
    spdlog::info("{} of {} came from a debuginfod server: {} bytes", file_name(*outcome), identity.path, bytes);
    symbol::limit_debuginfod_folder(folder_, limit_bytes_, build_id);
    publish_progress(build_id, {ModuleFetch::State::arrived, bytes, bytes, ""});
    events_.arrived(identity);
}

void DebugFetch::publish_progress(const std::string& build_id, const ModuleFetch& progress) {
    std::vector<std::shared_ptr<Session>> sessions;
    {
        const std::lock_guard lock(mutex_);
        Job& job = jobs_[build_id];
        job.progress = progress;
        std::erase_if(job.waiting, [](const auto& one) { return one.first.expired(); });
        for (const auto& [weak, module] : job.waiting)
            if (const auto session = weak.lock()) {
                session->symbols().set_debug_fetch(module, progress);
                sessions.push_back(session);
            }
    }
    for (const auto& session : sessions) events_.changed(session);
}

// Sets one notice for all modules: no server responds. An empty text clears it.
void DebugFetch::set_notice_everywhere(const std::string& text, const std::string& remedy) {
    const std::lock_guard lock(mutex_);
    if (text.empty() && notice_text_.empty()) return;
    notice_text_ = text;
    notice_remedy_ = remedy;
    if (text.empty()) paused_until_ = {};
    for (const auto& [id, job] : jobs_)
        for (const auto& [weak, module] : job.waiting)
            if (const auto session = weak.lock()) session->status().set_notice("debuginfod", text, remedy);
}

std::vector<std::string> fetch_debug_info(
    Session& session, symbol::Symbolizer& symbolizer, const std::string& folder, std::uint64_t limit_bytes,
    const std::function<void(const std::string& name, std::uint64_t got, std::uint64_t total)>& progress) {
    std::vector<std::string> problems;
    symbol::DebuginfodClient client;
    for (const WantedModule& wanted : session.symbols().missing_debug_info()) {
        const std::string name = file_name(wanted.identity.path);
        const symbol::DebuginfodClient::Progress reported = [&](std::uint64_t got, std::uint64_t total) {
            progress(name, got, total);
            return true;
        };
        auto outcome = client.debug_info(wanted.identity.build_id, reported);
        if (!outcome && outcome.error().code == ErrorCode::not_found && wanted.no_executable)
            outcome = client.executable(wanted.identity.build_id, reported);
        if (!outcome && outcome.error().code != ErrorCode::not_found)
            problems.push_back(fmt::format("no debug info for {}: {}", name, outcome.error().message));
        if (is_unreachable(outcome)) break;  // the other builds would fail too
        if (!outcome) continue;
        symbol::limit_debuginfod_folder(folder, limit_bytes, wanted.identity.build_id);
        symbolizer.forget(wanted.identity);
    }
    session.symbols().symbolize(symbolizer, [] {});
    return problems;
}

}  // namespace flamewire::server
