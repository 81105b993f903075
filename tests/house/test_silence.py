"""What once gave a wrong answer, leaked, hung or crashed without a word, and the test of each."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]

TABLE = {
    "a map written to in memory is sent by the name of its file": [
        "search/test_auto.py::test_a_map_that_was_written_to_is_not_sent_by_the_name_of_its_file",
        "search/test_auto.py::test_a_file_that_changes_under_a_run_is_noticed",
    ],
    "an encoder of one's own is bypassed": [
        "encoder/test_wrap.py::test_an_encoder_of_convolutions_is_not_bypassed",
        "encoder/test_wrap.py::test_what_the_latent_is_by_default",
        "encoder/test_wrap.py::test_a_latent_that_is_the_signal_is_refused",
        "training/test_signals.py::test_the_latent_of_a_module_is_said",
    ],
    "predict ignores rate, order, names and unit": [
        "training/test_signals.py::test_channels_are_put_in_order_by_name",
        "training/test_signals.py::test_other_recordings_are_refused_by_name",
        "training/test_signals.py::test_units_are_converted",
        "training/test_signals.py::test_another_amplitude_is_told",
        "cli/test_model_commands.py::test_predict_uses_what_the_file_knows",
    ],
    "a column of MNE's metadata is taken for a person": [
        "data/sources/test_mne_source.py::test_subjects_and_labels_in_columns_of_the_metadata",
        "data/sources/test_mne_source.py::test_a_column_that_is_not_there",
    ],
    "names are lost": [
        "training/test_signals.py::test_names_are_kept",
        "training/test_signals.py::test_classes_and_people_are_selected_by_name",
        "report/test_page.py::test_names_go_all_the_way",
        "cli/test_model_commands.py::test_predict_tells_names_of_classes_and_people",
    ],
    "swapped axes pass, and EMG normalised by channel": [
        "data/checks/test_checks.py::test_swapped_axes_of_recordings_are_told",
        "data/checks/test_checks.py::test_swapped_axes_are_told_by_the_signals_too",
        "data/checks/test_checks.py::test_muscles_and_the_normalisation_of_channels",
        "training/test_signals.py::test_muscles_normalised_by_channel_are_told",
    ],
    "the report prints what was asked for": [
        "report/test_page.py::test_the_page_says_what_was_done_and_not_what_was_asked_for",
        "report/test_page.py::test_training_that_ended_too_early_is_told_first",
    ],
    "everybody's own score is part of the choice": [
        "search/settings/test_selection.py::test_nested_scores_by_leaving_each_person_out",
        "search/settings/test_selection.py::test_a_persons_own_score_does_not_reach_the_nested_choice",
        "report/test_page.py::test_the_numbers_are_those_of_the_table_of_trials",
    ],
    "passwords are written and printed": [
        "search/test_secrets.py::test_a_run_keeps_host_port_and_name_only",
        "search/test_secrets.py::test_an_address_that_cannot_be_used_is_not_read_aloud",
    ],
    "files that hang, take gigabytes or crash": [
        "refused/test_hostile_files.py::test_the_file_is_refused_by_name",
        "refused/test_fuzz.py::test_changed_files_load_or_are_refused_by_name",
        "refused/test_documents.py::test_what_could_not_be_used_is_not_parsed",
        "search/test_status.py::test_a_damaged_run_is_not_taken_up",
        "search/test_status.py::test_a_sign_of_life_that_is_none",
        "data/sources/test_matlab.py::test_numbers_are_those_that_scipy_reads",
    ],
    "names steer terminals, break pictures, are formulas": [
        "test_text.py::test_what_inspect_prints_steers_no_terminal",
        "test_text.py::test_pictures_and_page_are_well_formed",
        "test_text.py::test_no_cell_of_a_table_is_a_formula",
    ],
    "SIGTERM, hanging trials, orphans": [
        "cli/test_run_command.py::test_sigterm_is_a_first_control_c",
        "search/test_driver.py::test_sigterm_gives_trials_a_while_and_then_stops",
        "search/test_driver.py::test_a_trial_that_seems_to_hang_is_named_once_and_left_alone",
        "search/engines/test_local.py"
        "::test_a_worker_goes_with_a_driver_that_is_killed_while_it_imports",
    ],
    "actions that can be moved (lowest versions: bash .ci/run lowest)": [
        "house/test_release.py::test_actions_are_pinned_by_hash_and_checkouts_keep_no_credentials",
    ],
    "words that leave a beginner alone": [
        "training/test_signals.py::test_words_for_beginners",
        "training/test_signals.py::test_a_data_set_is_all_that_fit_needs",
        "encoder/test_registry.py::test_a_class_that_cannot_be_called_with_a_shape",
        "data/sources/test_load.py::test_two_arrays_lack_the_subjects",
        "search/test_budget.py::test_a_number_without_a_unit_is_refused",
        "search/test_status.py::test_looking_at_a_run_imports_nothing_heavy",
    ],
}


@pytest.mark.parametrize("item", TABLE)
def test_each_item_has_its_tests(item):
    for place in TABLE[item]:
        path, _, name = place.partition("::")
        tree = ast.parse((TESTS / path).read_text(encoding="utf-8"))
        assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, place
